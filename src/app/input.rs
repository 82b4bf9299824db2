//! Extractors of JSON bodies in UTF-8, with or without a byte order mark. Errors name the position.

use axum::{
    Json,
    body::{Body, Bytes, to_bytes},
    extract::{FromRequest, Request},
    http::request::Parts,
};
use brewbench_wire::reports::encoding::without_mark;
use serde::de::DeserializeOwned;

use crate::app::{
    error::{Error, Result},
    listener::is_stalled,
    rate_limit::uploads::{SMALL, UploadPermit},
    state::AppState,
};

/// A JSON body from an authenticated caller.
#[derive(Debug)]
pub struct Input<T>(pub T);

/// A small JSON body from any caller. It needs no upload budget.
#[derive(Debug)]
pub struct SmallInput<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for Input<T> {
    type Rejection = Error;

    async fn from_request(request: Request, state: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let _room = UploadPermit::unless_taken(&parts, state).await?;
        let bytes = Bytes::from_request(Request::from_parts(parts.clone(), body), state).await?;
        read(parts, &bytes).await.map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<AppState> for SmallInput<T> {
    type Rejection = Error;

    async fn from_request(request: Request, _: &AppState) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let bytes = to_bytes(body, SMALL).await.map_err(|fault| {
            if is_stalled(&fault) {
                Error::Stalled
            } else {
                Error::TooLarge("the body is larger than the limit".to_owned())
            }
        })?;
        read(parts, &bytes).await.map(Self)
    }
}

async fn read<T: DeserializeOwned>(parts: Parts, bytes: &Bytes) -> Result<T> {
    let text = without_mark(bytes).map_err(|fault| Error::Invalid(format!("the body {fault}")))?;
    let request = Request::from_parts(parts, Body::from(bytes.slice_ref(text)));
    let Json(input) = Json::from_request(request, &()).await?;
    Ok(input)
}
