//! `brewbench audit …`

use brewbench::auth::audit::{AuditFilter, Entry, EntryList};
use clap::Subcommand;
use jiff::Timestamp;
use reqwest::Method;

use super::table::{cut, plain, table, with_below};
use crate::common::Common;

/// Show the audit log.
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// List audit entries, newest first
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Only actions of this user; a token is "token NAME"
        #[arg(long)]
        actor: Option<String>,
        /// Only this action, e.g. "login refused"
        #[arg(long)]
        action: Option<String>,
        /// First day to list, e.g. 2026-03-04 (UTC)
        #[arg(long, value_name = "DAY")]
        from: Option<String>,
        /// Last day to list (UTC)
        #[arg(long, value_name = "DAY")]
        to: Option<String>,
        /// Only entries after the one with this id in the list, for the next page
        #[arg(long, value_name = "ID")]
        after: Option<i64>,
        /// Maximum number of entries, up to 1000
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
}

impl Audit {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self::List { common, actor, action, from, to, after, limit } = self;
        let wanted = AuditFilter { actor, action, from, to, after, limit: Some(limit) };
        let client = common.connect()?.client;
        let list: EntryList = client.json(client.request(Method::GET, "api/v1/audit").query(&wanted)).await?;
        common.print(&list, |list| rows(&list.entries))
    }
}

fn rows(entries: &[Entry]) -> String {
    let head = ["time", "actor", "action", "from"];
    let row = |entry: &Entry| {
        let at = Timestamp::from_millisecond(entry.at_ms);
        vec![
            at.map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default(),
            cut(&entry.actor, 24),
            entry.action.clone(),
            entry.address.clone().unwrap_or_else(|| "–".to_owned()),
        ]
    };
    let about = |entry: &Entry| {
        let parts = [entry.object.clone(), entry.describe()].into_iter().filter(|part| !part.is_empty());
        plain(&parts.collect::<Vec<_>>().join(" · "))
    };
    with_below(&table(&head, entries, row), entries.iter().map(about))
}
