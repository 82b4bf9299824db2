//! Logins that were refused, on their way into the audit log.
//!
//! Anybody can have a login refused, again and again, and an entry of its own for each would wait for the disk each time. So
//! they are written down together, at most once a second, and the same refusal of one address becomes one entry that
//! says how many times. What is in memory is bounded, and written down when the server ends.

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

use super::audit::{Act, SOMEBODY};
use crate::{
    app::db::Db,
    auth::{audit::deed::Deed, store::audit::note_all},
};

/// How long refusals are gathered after some were written down.
const EVERY: Duration = Duration::from_secs(1);

/// Of more kinds than these at once, the rest is counted without addresses.
const MOST: usize = 200;

/// What the rest is counted under.
const OF_MANY: &str = "refused; of many addresses";

/// Those that are to be written down; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    come: Notify,
}

/// How often, by address and by what was told.
type Waiting = BTreeMap<(Option<IpAddr>, String), u64>;

impl Refusals {
    /// Somebody was refused with this sentence. Whose passkey it claimed to be stays out of the log: anybody can claim
    /// anything.
    pub fn add(&self, address: Option<IpAddr>, told: &str) {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (address, told.to_owned());
        let is_one_too_many = waiting.len() >= MOST && !waiting.contains_key(&kind);
        *waiting.entry(if is_one_too_many { (None, OF_MANY.to_owned()) } else { kind }).or_default() += 1;
        drop(waiting);
        self.0.come.notify_one();
    }

    /// Writes them down as they come, until the server ends.
    pub async fn keep(self, db: Db, end: CancellationToken) {
        let keep = async {
            loop {
                self.0.come.notified().await;
                self.write_down(&db).await;
                sleep(EVERY).await;
            }
        };
        end.run_until_cancelled(keep).await;
    }

    /// Writes down what there is; to be called once more when nobody is refused any more.
    pub async fn write_down(&self, db: &Db) {
        let acts: Vec<_> = self.take().into_iter().map(act).collect();
        if acts.is_empty() {
            return;
        }
        if let Err(fault) = note_all(&db.write, &acts).await {
            tracing::error!(%fault, entries = acts.len(), "refused logins are not in the audit log");
        }
    }

    fn take(&self) -> Waiting {
        mem::take(&mut self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn act(((address, told), times): ((Option<IpAddr>, String), u64)) -> Act {
    let detail = if times == 1 { json!({"told": told}) } else { json!({"told": told, "times": times}) };
    Act::new(SOMEBODY, address, Deed::LoginRefused, "").with(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{audit::Wanted, store::audit::entries};

    #[tokio::test]
    async fn what_comes_together_is_one_entry_with_its_count_and_memory_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = crate::app::db::open(folder.path()).await.expect("a database");
        let refusals = Refusals::default();
        for _ in 0..12 {
            refusals.add("192.0.2.1".parse().ok(), "no");
        }
        for n in 0..1_000_u32 {
            refusals.add(Some(IpAddr::from(n.to_be_bytes())), "no");
        }
        refusals.write_down(&db).await;
        let range = Wanted { limit: Some(1000), ..Wanted::default() }.range().expect("everything");
        let all = entries(&db.read, &range).await.expect("entries");
        let times = |entry: &crate::auth::audit::Entry| entry.detail["times"].as_u64().unwrap_or(1);
        assert_eq!((all.len(), all.iter().map(times).sum::<u64>()), (MOST + 1, 1_012));
        let of = |address: &str| all.iter().find(|entry| entry.address.as_deref() == Some(address)).map(times);
        assert_eq!((of("192.0.2.1"), of("0.0.0.1")), (Some(12), Some(1)));
        assert!(all.iter().any(|entry| entry.address.is_none() && entry.detail["told"] == OF_MANY));
        assert!(refusals.take().is_empty());
    }
}
