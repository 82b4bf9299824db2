//! The one error of HTTP handlers. A handler answers with it; [`crate::web::errors`] makes it a page for browsers.

use axum::{
    Json,
    extract::{
        FromRequestParts,
        multipart::MultipartError,
        rejection::{BytesRejection, JsonRejection},
    },
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use axum_extra::extract::{Query, QueryRejection};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use crate::app::input::{Input, SmallInput};
use crate::{app::listener::is_stalled, web::request};

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was sent can't be used; the sentence names fault and place.
    #[error("{0}")]
    Invalid(String),
    /// Nobody is logged in and no token came along.
    #[error("log in, or send a token in the Authorization header")]
    Unauthenticated,
    /// Known, but not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// Allowed, but it takes a recent proof of who asks.
    #[error("this takes your passkey: confirm that it is you, and do it again")]
    Unproven,
    /// There is no such thing.
    #[error("there is no {0}")]
    NotFound(String),
    /// It can't be done in the present state.
    #[error("{0}")]
    Conflict(String),
    /// More than the limit.
    #[error("{0}")]
    TooLarge(String),
    /// Asked under a name that is not the server's.
    #[error(
        "this server is not known as {0:?}; if that is its name, start it with --public-url (BREWBENCH_PUBLIC_URL), and have \
         a proxy before it pass the Host header on"
    )]
    Misdirected(String),
    /// Tried too often; the seconds after which to try again.
    #[error("too many tries; wait {0} s and try again")]
    TooMany(u64),
    /// Others have what this needs; with the seconds after which to try again.
    #[error("{why}")]
    Busy {
        /// A sentence.
        why: String,
        /// Seconds.
        wait_s: u64,
    },
    /// The body of the request did not come.
    #[error("the rest of the body did not come; send it again")]
    Stalled,
    /// The disk is full: nothing was stored.
    #[error("the server's disk is full: nothing was stored; make room in its data folder and try again")]
    DiskFull,
    /// The server can't do its work now.
    #[error("{0}")]
    NotReady(&'static str),
    /// A fault of ours; the cause goes to the log, not to the caller.
    #[error("something went wrong on the server; its log knows more")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The JSON body of every error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// A sentence for people.
    pub error: String,
    /// The request by the name that it has in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Whether it is done once a passkey has confirmed who asks: `POST /api/v1/auth/confirm/start`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

impl ErrorBody {
    /// About the request that is answered.
    pub fn new(error: String) -> Self {
        Self { error, request_id: request::id(), confirm: false }
    }
}

/// A handler's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A fault of ours, from any cause.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal(cause.into())
    }

    /// The HTTP status that goes with it.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) | Self::Unproven => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Misdirected(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
            Self::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::Busy { .. } | Self::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// What SQLite answers when there is no room: `SQLITE_FULL`.
const SQLITE_FULL: &str = "13";

impl From<sqlx::Error> for Error {
    fn from(cause: sqlx::Error) -> Self {
        match &cause {
            sqlx::Error::Database(fault) if fault.code().as_deref() == Some(SQLITE_FULL) => Self::DiskFull,
            sqlx::Error::Decode(fault) if is_full(fault.as_ref()) => Self::DiskFull,
            _ => Self::internal(cause),
        }
    }
}

/// Whether it is what SQLite says of a full disk to who does not ask by way of sqlx.
fn is_full(fault: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let fault = fault.downcast_ref::<rusqlite::Error>();
    fault.and_then(rusqlite::Error::sqlite_error_code) == Some(rusqlite::ErrorCode::DiskFull)
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        if let Self::Internal(cause) = &self {
            tracing::error!(%cause, "request failed");
        }
        let confirm = matches!(self, Self::Unproven);
        let body = ErrorBody { confirm, ..ErrorBody::new(self.to_string()) };
        let mut response = (self.status(), Json(body)).into_response();
        if confirm {
            response.extensions_mut().insert(Unproven);
        }
        if let Self::TooMany(seconds) | Self::Busy { wait_s: seconds, .. } = &self {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
        }
        response.extensions_mut().insert(Told(self.to_string()));
        response
    }
}

/// Rides on the response to what takes a recent proof: a browser is led to where it can give one.
#[derive(Clone, Copy, Debug)]
pub struct Unproven;

/// Rides on an error's response, so that a browser can be shown a page with the same sentence.
#[derive(Clone, Debug)]
pub struct Told(pub String);

/// What the query of an address asks for; one that can't be read is answered as a body would be.
#[derive(Debug, FromRequestParts)]
#[from_request(via(Query), rejection(Error))]
pub struct Asked<T>(pub T);

impl From<QueryRejection> for Error {
    fn from(fault: QueryRejection) -> Self {
        Self::Invalid(fault.body_text())
    }
}

impl From<JsonRejection> for Error {
    fn from(fault: JsonRejection) -> Self {
        match fault {
            JsonRejection::BytesRejection(fault) => fault.into(),
            fault => Self::Invalid(fault.body_text()),
        }
    }
}

impl From<BytesRejection> for Error {
    fn from(fault: BytesRejection) -> Self {
        match fault.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge("the body is larger than the limit".to_owned()),
            _ if is_stalled(&fault) => Self::Stalled,
            _ => Self::Invalid(fault.body_text()),
        }
    }
}

impl From<MultipartError> for Error {
    fn from(fault: MultipartError) -> Self {
        match fault.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge("the files are larger than the limit".to_owned()),
            _ if is_stalled(&fault) => Self::Stalled,
            _ => Self::Invalid(fault.body_text()),
        }
    }
}
