//! `brewbench difference …`

use brewbench::differences::{AcceptedDifference, DifferenceList, NewDifference, WorkFact};
use clap::Subcommand;
use reqwest::Method;

use super::table::{cut, left, plain, table, with_below};
use crate::common::Common;

/// Manage accepted differences in work.
#[derive(Debug, Subcommand)]
pub enum Difference {
    /// Accept a difference in the work of two targets, so that they can be compared
    Accept {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// A target
        one: String,
        /// The other target, or the same one to compare its versions
        other: String,
        /// Fact that may differ: requests, bytes, statuses, checks, connections or protocols; repeatable
        #[arg(long = "fact", value_name = "FACT", value_delimiter = ',', required = true)]
        facts: Vec<WorkFact>,
        /// Why the difference is acceptable
        #[arg(long)]
        note: String,
        /// Only for this scenario [default: all]
        #[arg(long)]
        scenario: Option<String>,
    },
    /// List accepted differences
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Revoke an accepted difference: while their work differs, its targets are not compared
    #[command(alias = "revoke")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// Id of the accepted difference
        id: i64,
    },
}

impl Difference {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Accept { common, one, other, facts, note, scenario } => {
                let facts = facts.into_iter().collect();
                let body = NewDifference { targets: [one, other], scenario, facts, note };
                let client = common.connect()?.client;
                let request = client.request(Method::POST, "api/v1/differences").json(&body);
                let accepted: AcceptedDifference = client.json(request).await?;
                common.print(&accepted, |accepted| rows(std::slice::from_ref(accepted)))
            }
            Self::List { common } => {
                common.show("api/v1/differences", |list: &DifferenceList| rows(&list.differences)).await
            }
            Self::Delete { common, id } => {
                common.connect()?.client.delete(&format!("api/v1/differences/{id}")).await?;
                eprintln!("revoked accepted difference {id}");
                Ok(())
            }
        }
    }
}

fn rows(differences: &[AcceptedDifference]) -> String {
    if differences.is_empty() {
        return "no accepted differences\n".to_owned();
    }
    let head = [">id", "targets", "scenario", ">accepted", "may differ"];
    let now = brewbench_wire::now_ms();
    let row = |one: &AcceptedDifference| {
        vec![
            one.id.to_string(),
            cut(&plain(&one.pair()), 40),
            cut(&plain(one.scenario.as_deref().unwrap_or("all")), 20),
            format!("{} ago", left(now - one.accepted_at_ms)),
            one.facts_text(),
        ]
    };
    let below = |one: &AcceptedDifference| format!("{}: {}", plain(&one.accepted_by), plain(&one.note));
    with_below(&table(&head, differences, row), differences.iter().map(below))
}
