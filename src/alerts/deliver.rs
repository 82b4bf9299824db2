//! Sends what was written down for webhooks, until each took it or it is given up.
//!
//! A receiver may get an event more than once, under the same id: one whose answer was lost, or came when the server
//! ended. Each webhook gets one at a time, the oldest first; one that is to be tried again does not hold up the others.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use brewbench_agent::{connection::client::prepare_tls, sanitize::plain, wire::now_ms};
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
        store::webhooks::{self, Due},
    },
    app::{error::Result, state::AppState},
};

/// How long after each try there is another one, s: the last is seven hours after the first.
const WAITS_S: [i64; 6] = [5, 30, 2 * 60, 10 * 60, 60 * 60, 6 * 60 * 60];

/// A receiver has to answer within this.
const PATIENCE: Duration = Duration::from_secs(10);

/// More of an answer is not read, bytes.
const MOST_READ: usize = 64 * 1024;

/// More of an answer is not kept, characters.
const MOST_KEPT: usize = 300;

/// How long what was sent can be looked at, ms.
const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// How long to wait if nothing is to be sent: then it is looked for what is old.
const IDLE: Duration = Duration::from_hours(1);

/// How long to wait if what became of a try could not be kept.
const AFTER_FAULT: Duration = Duration::from_secs(30);

/// What became of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it ended, unix ms.
    pub at_ms: i64,
    /// What the receiver answered.
    pub status: Option<u16>,
    /// Why it does not count as taken.
    pub fault: Option<String>,
}

/// Sends until the server ends.
pub async fn work(state: AppState) {
    loop {
        let pause = match round(&state).await {
            Ok(pause) => pause,
            Err(fault) => {
                tracing::error!(%fault, "webhooks");
                AFTER_FAULT
            }
        };
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = state.outbox.notified() => {}
            () = sleep(pause) => {}
        }
    }
}

/// Sends all that is due; gives how long nothing will be.
async fn round(state: &AppState) -> Result<Duration> {
    let (read, write) = (&state.db.read, &state.db.write);
    loop {
        let due = webhooks::due(read, now_ms()).await?;
        if due.is_empty() {
            break;
        }
        for done in join_all(due.iter().map(|due| send(state, due))).await {
            done?;
        }
        if state.shutdown.is_cancelled() {
            return Ok(IDLE);
        }
    }
    if state.clock.may_delete() {
        webhooks::prune(write, now_ms() - KEPT_MS).await?;
        alerts::store::prune(write, now_ms() - KEPT_MS).await?;
    }
    let next = webhooks::next_due(read).await?;
    Ok(next.map_or(IDLE, |at| Duration::from_millis(u64::try_from(at - now_ms()).unwrap_or(0))))
}

async fn send(state: &AppState, due: &Due) -> Result<()> {
    let attempt = tokio::select! {
        // It is sent again by the next server, under the same id.
        () = state.shutdown.cancelled() => return Ok(()),
        attempt = attempt(state, due) => attempt,
    };
    let wait_s = usize::try_from(due.tries).ok().and_then(|tries| WAITS_S.get(tries));
    let next = wait_s.filter(|_| attempt.fault.is_some()).map(|wait_s| attempt.at_ms + wait_s * 1_000);
    keep(state, due, &attempt, next).await
}

/// Sends something once, whatever comes of it.
pub async fn once(state: &AppState, due: &Due) -> Result<()> {
    let attempt = attempt(state, due).await;
    keep(state, due, &attempt, None).await
}

async fn keep(state: &AppState, due: &Due, attempt: &Attempt, next: Option<i64>) -> Result<()> {
    if let Some(fault) = &attempt.fault {
        let (webhook, id) = (due.webhook_id, &due.event_id);
        tracing::warn!(webhook, id, status = attempt.status, fault, given_up = next.is_none(), "not delivered");
    }
    webhooks::note(&state.db.write, due, attempt, next).await?;
    Ok(())
}

async fn attempt(state: &AppState, due: &Due) -> Attempt {
    let posted = timeout(PATIENCE, post(state, due)).await;
    let (status, fault) = match posted {
        Ok(Ok(answer)) => answer,
        Ok(Err(fault)) => (None, Some(fault)),
        Err(_) => (None, Some(format!("no answer within {} s", PATIENCE.as_secs()))),
    };
    let fault = fault.map(|fault| plain(&fault).chars().take(MOST_KEPT).collect());
    Attempt { at_ms: now_ms(), status, fault }
}

/// The status of the answer, and what of it to keep if it is no success.
async fn post(state: &AppState, due: &Due) -> Result<(Option<u16>, Option<String>), String> {
    let url: Url = due.url.parse().map_err(|fault| format!("the address makes no sense: {fault}"))?;
    let client = door(&url, address::look_up(&url, &state.config.webhooks_to).await?)?;
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
    let answer = request.send().await.map_err(|fault| innermost(&fault))?;
    let status = answer.status();
    if status.is_success() {
        return Ok((Some(status.as_u16()), None));
    }
    let said = beginning(answer).await;
    let fault = if status.is_redirection() { "redirects are not followed".to_owned() } else { said };
    Ok((Some(status.as_u16()), Some(fault)))
}

/// A client that goes to these addresses and to no others, whatever somebody says of the name meanwhile.
fn door(url: &Url, addresses: Vec<SocketAddr>) -> Result<Client, String> {
    prepare_tls();
    let builder = Client::builder();
    // A machine without any CA certificates can speak plain HTTP at least.
    let builder = if url.scheme() == "http" { builder.tls_certs_only([]) } else { builder };
    builder
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .dns_resolver(Arc::new(Known(addresses)))
        .user_agent(concat!("brewbench/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|fault| innermost(&fault))
}

/// Addresses that were looked up and looked at before.
struct Known(Vec<SocketAddr>);

impl Resolve for Known {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(async { Ok(addresses) })
    }
}

/// The beginning of an answer as text.
async fn beginning(mut answer: Response) -> String {
    let mut read = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        read.extend_from_slice(&chunk);
        if read.len() >= MOST_READ {
            break;
        }
    }
    read.truncate(MOST_READ);
    String::from_utf8_lossy(&read).trim().to_owned()
}

/// reqwest wraps what really happened in several layers, and names the address, which may hold a secret.
fn innermost(fault: &dyn std::error::Error) -> String {
    let mut fault = fault;
    while let Some(source) = fault.source() {
        fault = source;
    }
    fault.to_string()
}
