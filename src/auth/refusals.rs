//! Refused authentication: a log line for each, and a buffer of refused logins for the audit log.
//!
//! Anybody can cause refused logins, and each entry needs a disk sync. So they are written in batches, at most once a
//! second, and equal refusals of one address become one entry with a count. The buffer is bounded and is flushed at
//! shutdown.

use std::{
    collections::BTreeMap,
    mem,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::json;
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use super::audit::{ANONYMOUS, AuditEvent};
use crate::{
    app::db::Db,
    auth::{audit::action::Action, store::audit::note_all},
};

/// What was not accepted.
#[derive(Clone, Copy, Debug)]
pub enum Refused {
    /// A passkey at a login or a confirmation.
    Passkey,
    /// A registration link.
    Invitation,
    /// A token, which may have ended.
    Token,
    /// The key of an agent.
    AgentKey,
}

impl Refused {
    fn as_str(self) -> &'static str {
        match self {
            Self::Passkey => "passkey",
            Self::Invitation => "invitation",
            Self::Token => "token",
            Self::AgentKey => "agent-key",
        }
    }
}

/// Logs a refusal. Programs that block addresses read this line, so its form is stable (`docs/guide/security.md`): in
/// text it names no span, and nothing in it comes from the caller.
pub fn log(what: Refused, address: Option<IpAddr>) {
    let address = address.map_or_else(|| "unknown".to_owned(), |address| address.to_string());
    tracing::warn!(parent: None, %address, what = %what.as_str(), "authentication refused");
}

/// The interval between two batches.
const INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of distinct refusals per batch; further ones are counted without addresses.
const MAX_DISTINCT: usize = 200;

/// The detail of refusals beyond that number.
const OTHERS: &str = "refused; of many addresses";

/// The buffer; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    unwritten: Mutex<Counts>,
    added: Notify,
}

/// Counts by address and error message.
type Counts = BTreeMap<(Option<IpAddr>, String), u64>;

impl Refusals {
    /// Adds a refusal with its error message. The claimed user stays out of the log, because the claim is not verified.
    pub fn add(&self, address: Option<IpAddr>, message: &str) {
        log(Refused::Passkey, address);
        let mut unwritten = self.0.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (address, message.to_owned());
        let is_full = unwritten.len() >= MAX_DISTINCT && !unwritten.contains_key(&kind);
        *unwritten.entry(if is_full { (None, OTHERS.to_owned()) } else { kind }).or_default() += 1;
        drop(unwritten);
        self.0.added.notify_one();
    }

    /// Writes batches until `end` is cancelled.
    pub async fn run(self, db: Db, end: CancellationToken) {
        let run = async {
            loop {
                self.0.added.notified().await;
                self.flush(&db).await;
                sleep(INTERVAL).await;
            }
        };
        end.run_until_cancelled(run).await;
    }

    /// Writes the buffered refusals. Must be called again at shutdown.
    pub async fn flush(&self, db: &Db) {
        let acts: Vec<_> = self.take().into_iter().map(act).collect();
        if acts.is_empty() {
            return;
        }
        if let Err(fault) = note_all(&db.write, &acts).await {
            tracing::error!(%fault, entries = acts.len(), "failed to write refused logins to the audit log");
        }
    }

    fn take(&self) -> Counts {
        mem::take(&mut self.0.unwritten.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn act(((address, message), times): ((Option<IpAddr>, String), u64)) -> AuditEvent {
    let detail = if times == 1 { json!({"message": message}) } else { json!({"message": message, "times": times}) };
    AuditEvent::new(ANONYMOUS, address, Action::LoginRefused, "").with(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{audit::AuditFilter, store::audit::entries};

    #[tokio::test]
    async fn equal_refusals_are_counted_and_memory_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = crate::app::db::open(folder.path()).await.expect("a database");
        let refusals = Refusals::default();
        for _ in 0..12 {
            refusals.add("192.0.2.1".parse().ok(), "no");
        }
        for n in 0..1_000_u32 {
            refusals.add(Some(IpAddr::from(n.to_be_bytes())), "no");
        }
        refusals.flush(&db).await;
        let range = AuditFilter { limit: Some(1000), ..AuditFilter::default() }.range().expect("everything");
        let all = entries(&db.read, &range).await.expect("entries");
        let times = |entry: &crate::auth::audit::Entry| entry.detail["times"].as_u64().unwrap_or(1);
        assert_eq!((all.len(), all.iter().map(times).sum::<u64>()), (MAX_DISTINCT + 1, 1_012));
        let of = |address: &str| all.iter().find(|entry| entry.address.as_deref() == Some(address)).map(times);
        assert_eq!((of("192.0.2.1"), of("0.0.0.1")), (Some(12), Some(1)));
        assert!(all.iter().any(|entry| entry.address.is_none() && entry.detail["message"] == OTHERS));
        assert!(refusals.take().is_empty());
    }
}
