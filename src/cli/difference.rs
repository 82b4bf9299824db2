//! `brewbench difference …`

use clap::Subcommand;
use reqwest::Method;

use super::table::{Align, cut, left, plain, table};
use crate::{
    cli::common::Common,
    differences::{AcceptedDifference, DifferenceList, NewDifference, WorkFact},
};

/// Commands about differences in work.
#[derive(Debug, Subcommand)]
pub enum Difference {
    /// Accept a difference in the work of two targets: comparisons between them are judged in spite of it
    Accept {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// A target
        one: String,
        /// The other target; the same one where its versions are compared
        other: String,
        /// What may differ: requests, bytes, statuses, checks, connections or protocols; may be given several times
        #[arg(long = "fact", value_name = "FACT", value_delimiter = ',', required = true)]
        facts: Vec<WorkFact>,
        /// Why that is fine
        #[arg(long)]
        note: String,
        /// Only under this scenario [default: all]
        #[arg(long)]
        scenario: Option<String>,
    },
    /// List the accepted differences
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
    },
    /// Revoke an acceptance: comparisons of its targets name no winner while their work differs
    Revoke {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Its number in the list
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
                let list: DifferenceList = common.connect()?.client.get("api/v1/differences").await?;
                common.print(&list, |list| rows(&list.differences))
            }
            Self::Revoke { common, id } => {
                common.connect()?.client.delete(&format!("api/v1/differences/{id}")).await?;
                eprintln!("the acceptance {id} is revoked");
                Ok(())
            }
        }
    }
}

fn rows(differences: &[AcceptedDifference]) -> String {
    if differences.is_empty() {
        return "no difference is accepted\n".to_owned();
    }
    let head = [
        ("id", Align::Right),
        ("targets", Align::Left),
        ("scenario", Align::Left),
        ("may differ", Align::Left),
        ("accepted by", Align::Left),
        ("accepted", Align::Right),
        ("why", Align::Left),
    ];
    let now = brewbench_agent::wire::now_ms();
    let row = |one: &AcceptedDifference| {
        vec![
            one.id.to_string(),
            cut(&plain(&one.pair()), 40),
            cut(&plain(one.scenario.as_deref().unwrap_or("all")), 20),
            one.facts_text(),
            cut(&plain(&one.accepted_by), 20),
            format!("{} ago", left(now - one.accepted_at_ms)),
            cut(&plain(&one.note), 40),
        ]
    };
    table(&head, &differences.iter().map(row).collect::<Vec<_>>())
}
