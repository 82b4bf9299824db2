//! The error type of HTTP handlers. It becomes a JSON response; [`crate::web::errors`] turns it into a page.

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
use rusqlite::ffi;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::listener::is_stalled, web::request};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is invalid; the message names the field and the problem.
    #[error("{0}")]
    Invalid(String),
    /// Neither a session nor a token was sent.
    #[error("log in, or send a token in the Authorization header")]
    Unauthenticated,
    /// The token that was sent is a real one, but has ended.
    #[error("{0}")]
    Ended(String),
    /// The caller is authenticated, but not allowed to do this.
    #[error("{0}")]
    Forbidden(String),
    /// The caller is allowed, but must confirm their identity first.
    #[error("this needs a recent confirmation with your passkey; confirm your identity and try again")]
    Unproven,
    /// The item does not exist.
    #[error("there is no {0}")]
    NotFound(String),
    /// The current state does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The input exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
    /// The `Host` header is not the server's.
    #[error(
        "unknown host {0:?}; if this is the server's name, set --public-url (BREWBENCH_PUBLIC_URL), and let a reverse proxy \
        forward the Host header"
    )]
    Misdirected(String),
    /// Too many attempts; with the seconds after which to retry.
    #[error("too many attempts; try again in {0} s")]
    TooMany(u64),
    /// A resource is exhausted; with the seconds after which to retry.
    #[error("{why}")]
    Busy {
        /// The message.
        why: String,
        /// Seconds after which to retry.
        wait_s: u64,
    },
    /// The body of the request did not arrive.
    #[error("the request body did not arrive completely; send it again")]
    Stalled,
    /// The disk is full: nothing was stored.
    #[error("the server's disk is full and nothing was stored; free space for its data folder and try again")]
    DiskFull,
    /// The server is not ready.
    #[error("{0}")]
    NotReady(&'static str),
    /// An internal error. The cause is logged, not returned.
    #[error("internal server error; see the server's log")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The JSON body of every error.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// A message for users.
    pub error: String,
    /// Id of the request in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// True if the request needs a confirmation with a passkey first: `POST /api/v1/auth/confirm/start`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

impl ErrorBody {
    /// Creates the body for the current request.
    pub fn new(error: String) -> Self {
        Self { error, request_id: request::id(), confirm: false }
    }
}

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an internal error.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal(cause.into())
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unauthenticated | Self::Ended(_) => StatusCode::UNAUTHORIZED,
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

/// Seconds after which to retry when another program has locked the database.
const LOCKED_WAIT_S: u64 = 2;

impl From<sqlx::Error> for Error {
    fn from(cause: sqlx::Error) -> Self {
        let (code, message) = match &cause {
            sqlx::Error::Database(fault) => (fault.code().and_then(|code| code.parse().ok()), fault.message()),
            // Of a query that does not go through sqlx.
            sqlx::Error::Decode(fault) => fault.downcast_ref().map_or((None, ""), code_and_message),
            // Writers wait for each other, and the first one for the lock.
            sqlx::Error::PoolTimedOut => (Some(ffi::SQLITE_BUSY), ""),
            _ => (None, ""),
        };
        // A trigger says which limit was reached.
        if code == Some(ffi::SQLITE_CONSTRAINT_TRIGGER) {
            return Self::Conflict(message.to_owned());
        }
        // The lowest byte of an extended code is the primary code.
        match code.map(|code: i32| code & 0xff) {
            Some(ffi::SQLITE_FULL) => Self::DiskFull,
            Some(ffi::SQLITE_INTERRUPT) => {
                Self::Invalid("this needs too much work; search for longer words, or add a filter".to_owned())
            }
            Some(ffi::SQLITE_BUSY) => {
                tracing::warn!(%cause, "the database is locked");
                let why = "another program has locked the server's database; try again in a few seconds".to_owned();
                Self::Busy { why, wait_s: LOCKED_WAIT_S }
            }
            _ => Self::internal(cause),
        }
    }
}

fn code_and_message(fault: &rusqlite::Error) -> (Option<i32>, &str) {
    match fault {
        rusqlite::Error::SqliteFailure(fault, message) => {
            (Some(fault.extended_code), message.as_deref().unwrap_or_default())
        }
        _ => (None, ""),
    }
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
        response.extensions_mut().insert(ErrorMessage(self.to_string()));
        response
    }
}

/// Response extension that redirects browsers to the page that confirms the identity.
#[derive(Clone, Copy, Debug)]
pub struct Unproven;

/// Response extension with the error message, for the error page of browsers.
#[derive(Clone, Debug)]
pub struct ErrorMessage(pub String);

/// Extracts the query string. Errors are reported like those of a body.
#[derive(Debug, FromRequestParts)]
#[from_request(via(Query), rejection(Error))]
pub struct QueryParams<T>(pub T);

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
