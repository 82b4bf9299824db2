//! Delivers queued events to webhooks and retries failed attempts until it gives up.
//!
//! A receiver may get an event twice, with the same id, if its response was lost or came while the server stopped. Each
//! webhook gets one event at a time, oldest first; a delivery that waits for a retry does not block the others.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use brewbench_io::client::prepare_tls;
use brewbench_wire::{now_ms, sanitize::plain};
use futures_util::future::join_all;
use reqwest::{
    Client, Response,
    dns::{Addrs, Name, Resolve, Resolving},
    header,
    redirect::Policy,
};
use tokio::time::{sleep, timeout};
use url::Url;

use super::{address, sign::signature};
use crate::{
    alerts::{
        self,
        model::Attempt,
        store::webhooks::{self, Due},
    },
    app::{error::Result, state::AppState},
};

/// Delay before each retry, s. The last attempt is about seven hours after the first.
const RETRY_DELAYS_S: [i64; 6] = [5, 30, 2 * 60, 10 * 60, 60 * 60, 6 * 60 * 60];

/// Timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum length read of a response, bytes.
const MAX_READ: usize = 64 * 1024;

/// The maximum length stored of a response, characters.
const MAX_STORED: usize = 300;

/// Retention of deliveries and cleared alerts, ms.
const RETENTION_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// The pause if nothing is due. After it, old deliveries are pruned.
const IDLE: Duration = Duration::from_hours(1);

/// The pause after a database error.
const AFTER_ERROR: Duration = Duration::from_secs(30);

/// Delivers events until the server stops.
pub async fn work(state: AppState) {
    loop {
        let pause = match send_due(&state).await {
            Ok(pause) => pause,
            Err(fault) => {
                tracing::error!(%fault, "failed to deliver webhooks");
                AFTER_ERROR
            }
        };
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = state.outbox.notified() => {}
            () = sleep(pause) => {}
        }
    }
}

/// Sends all due deliveries. Returns the time until the next one is due.
async fn send_due(state: &AppState) -> Result<Duration> {
    let (read, write) = (&state.db.read, &state.db.write);
    loop {
        let due = webhooks::due(read, now_ms()).await?;
        if due.is_empty() {
            break;
        }
        for sent in join_all(due.iter().map(|due| send(state, due))).await {
            sent?;
        }
        if state.shutdown.is_cancelled() {
            return Ok(IDLE);
        }
    }
    if state.clock.may_delete() {
        webhooks::prune(write, now_ms() - RETENTION_MS).await?;
        alerts::store::prune(write, now_ms() - RETENTION_MS).await?;
    }
    let next = webhooks::next_due(read).await?;
    Ok(next.map_or(IDLE, |at| Duration::from_millis(u64::try_from(at - now_ms()).unwrap_or(0))))
}

async fn send(state: &AppState, due: &Due) -> Result<()> {
    let attempt = tokio::select! {
        // After a restart it is sent again, with the same id.
        () = state.shutdown.cancelled() => return Ok(()),
        attempt = attempt(state, due) => attempt,
    };
    let delay_s = usize::try_from(due.tries).ok().and_then(|tries| RETRY_DELAYS_S.get(tries));
    let next = delay_s.filter(|_| attempt.fault.is_some()).map(|delay_s| attempt.at_ms + delay_s * 1_000);
    store(state, due, &attempt, next).await
}

/// Attempts a delivery once, without retries.
pub async fn send_once(state: &AppState, due: &Due) -> Result<()> {
    let attempt = attempt(state, due).await;
    store(state, due, &attempt, None).await
}

async fn store(state: &AppState, due: &Due, attempt: &Attempt, next: Option<i64>) -> Result<()> {
    if let Some(fault) = &attempt.fault {
        let (webhook, id) = (due.webhook_id, &due.event_id);
        tracing::warn!(
            webhook,
            id,
            status = attempt.status,
            fault,
            given_up = next.is_none(),
            "webhook delivery failed"
        );
    }
    webhooks::record_attempt(&state.db.write, due, attempt, next).await?;
    Ok(())
}

async fn attempt(state: &AppState, due: &Due) -> Attempt {
    let posted = timeout(TIMEOUT, post(state, due)).await;
    let (status, fault) = match posted {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(fault)) => (None, Some(fault)),
        Err(_) => (None, Some(format!("no response within {} s", TIMEOUT.as_secs()))),
    };
    let fault = fault.map(|fault| plain(&fault).chars().take(MAX_STORED).collect());
    Attempt { at_ms: now_ms(), status, fault }
}

/// Posts an event. Returns the status and, unless it is a success, the error to store.
async fn post(state: &AppState, due: &Due) -> Result<(Option<u16>, Option<String>), String> {
    let url: Url = due.url.parse().map_err(|fault| format!("invalid URL: {fault}"))?;
    let client = client(&url, address::resolve(&url, &state.config.webhooks_to).await?)?;
    let timestamp_s = now_ms() / 1_000;
    let secret = state.secrets_key.decrypt(&due.encrypted_secret).map_err(|fault| fault.to_string())?;
    let signature = signature(&secret, &due.event_id, timestamp_s, &due.body).ok_or("the secret is damaged")?;
    let request = client
        .post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .header("webhook-id", &due.event_id)
        .header("webhook-timestamp", timestamp_s)
        .header("webhook-signature", signature)
        .body(due.body.clone());
    let response = request.send().await.map_err(|fault| innermost(&fault))?;
    let status = response.status();
    if status.is_success() {
        return Ok((Some(status.as_u16()), None));
    }
    let text = beginning(response).await;
    let fault = if status.is_redirection() { "redirects are not followed".to_owned() } else { text };
    Ok((Some(status.as_u16()), Some(fault)))
}

/// Creates a client that connects only to the checked addresses, even if DNS changes in between.
fn client(url: &Url, addresses: Vec<SocketAddr>) -> Result<Client, String> {
    prepare_tls();
    let builder = Client::builder();
    // Plain HTTP must work on a machine without CA certificates.
    let builder = if url.scheme() == "http" { builder.tls_certs_only([]) } else { builder };
    builder
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .dns_resolver(Arc::new(Resolved(addresses)))
        .user_agent(concat!("brewbench/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|fault| innermost(&fault))
}

/// A resolver that returns the checked addresses.
struct Resolved(Vec<SocketAddr>);

impl Resolve for Resolved {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(async { Ok(addresses) })
    }
}

/// Reads the beginning of a response as text.
async fn beginning(mut response: Response) -> String {
    let mut read = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        read.extend_from_slice(&chunk);
        if read.len() >= MAX_READ {
            break;
        }
    }
    read.truncate(MAX_READ);
    String::from_utf8_lossy(&read).trim().to_owned()
}

/// Returns the root cause: reqwest's outer errors contain the URL, which may hold a secret.
fn innermost(fault: &dyn std::error::Error) -> String {
    let mut fault = fault;
    while let Some(source) = fault.source() {
        fault = source;
    }
    fault.to_string()
}
