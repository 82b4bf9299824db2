//! Where Podman differs from Docker: its own list of containers, and an error that does not name its cause.

use std::path::Path;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use tokio::net::UnixStream;

/// A container in Podman's list.
#[derive(Debug, Deserialize)]
struct Listed {
    #[serde(rename = "Id")]
    id: String,
}

/// Completes an error: Podman's program for bridges does not name the program that it misses.
pub fn explain(fault: String) -> String {
    if fault.starts_with("netavark: No such file") { fault + "; is iptables installed?" } else { fault }
}

/// Returns the ids of all containers with this label. Killed while it removes a container, Podman knows one whose files
/// are gone: Docker's list of all containers then fails as a whole, Podman's own does not.
pub async fn ids(socket: &Path, label: &str) -> anyhow::Result<Vec<String>> {
    let filters = json!({"label": [label]}).to_string();
    let query = [("all", "true"), ("filters", filters.as_str())];
    let url = Url::parse_with_params("http://podman/v4.0.0/libpod/containers/json", query)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(UnixStream::connect(socket).await?)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::get(url.as_str().trim_start_matches("http://podman")).header(HOST, "podman");
    let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    anyhow::ensure!(response.status() == StatusCode::OK, "Podman answered with status {}", response.status());
    let listed: Vec<Listed> = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
    connection.abort();
    Ok(listed.into_iter().map(|container| container.id).collect())
}
