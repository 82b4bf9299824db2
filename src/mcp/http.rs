//! `/mcp`: the tools over HTTP, for callers with a token. Off by default.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, Method, header},
    response::Response,
    routing::post,
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::Value;
use tower::ServiceExt;
use url::Url;

use super::tools::{Api, Tools};
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::caller::Read,
};

/// The largest response of the API that a tool reads, bytes.
const LARGEST: usize = 64 << 20;

/// Returns the route, if it is wanted; its tools use these routes of the API.
pub fn router(state: &AppState, api: Router<AppState>) -> Router<AppState> {
    if !state.config.mcp {
        return Router::new();
    }
    let (api, site) = (api.with_state(state.clone()), Arc::clone(&state.public_url));
    let handler = |caller: Read, request: Request| answer(caller, request, api, site);
    Router::new().route("/mcp", post(handler))
}

/// Handles one message of an assistant. It keeps no session: each message brings its token.
async fn answer(_: Read, request: Request, api: Router, site: Arc<Url>) -> Result<Response> {
    let Some(authorization) = request.headers().get(header::AUTHORIZATION).cloned() else {
        return Err(Error::Invalid("assistants need an API token in the header Authorization".to_owned()));
    };
    let api = OwnApi { api, authorization, extensions: request.extensions().clone(), site };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // The site checks the host of every request.
        .disable_allowed_hosts();
    let tools = move || Ok(Tools::new(api.clone()));
    let service = StreamableHttpService::new(tools, Arc::new(NeverSessionManager::default()), config);
    Ok(service.handle(request).await.map(Body::new))
}

/// The API of this server, called with the token and from the address of a request.
#[derive(Clone)]
struct OwnApi {
    api: Router,
    authorization: HeaderValue,
    extensions: axum::http::Extensions,
    site: Arc<Url>,
}

impl Api for OwnApi {
    async fn send(&self, method: Method, path: String, body: Option<Value>) -> Result<Value, String> {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/{path}"))
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|fault| fault.to_string())?;
        *request.extensions_mut() = self.extensions.clone();
        let Ok(response) = self.api.clone().oneshot(request).await;
        let is_success = response.status().is_success();
        let body = to_bytes(response.into_body(), LARGEST).await.map_err(|fault| fault.to_string())?;
        let value: Value = serde_json::from_slice(&body).map_err(|fault| fault.to_string())?;
        if is_success { Ok(value) } else { Err(value["error"].as_str().unwrap_or("the request failed").to_owned()) }
    }

    fn site(&self) -> &Url {
        &self.site
    }
}
