//! `brewbench mcp`

use brewbench::mcp::tools::{Api, Tools};
use brewbench_io::client::Client;
use clap::Args;
use reqwest::Method;
use rmcp::{ServiceExt, transport::stdio};
use serde_json::Value;
use url::Url;

use crate::common::ServerFlags;

/// Offer the server's tools to an assistant over standard input and output (Model Context Protocol).
#[derive(Debug, Args)]
pub struct Mcp {
    #[command(flatten)]
    server: ServerFlags,
}

impl Mcp {
    /// Serves until the standard input ends.
    pub async fn run(self) -> anyhow::Result<()> {
        let client = self.server.connect()?.client;
        Tools::new(Remote(client)).serve(stdio()).await?.waiting().await?;
        Ok(())
    }
}

/// A server elsewhere.
struct Remote(Client);

impl Api for Remote {
    async fn send(&self, method: Method, path: String, body: Option<Value>) -> Result<Value, String> {
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let query: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
        let request = self.0.request(method, path).query(&query);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        self.0.json(request).await.map_err(|fault| fault.to_string())
    }

    fn site(&self) -> &Url {
        self.0.base()
    }
}
