//! `brewbench run rejudge`

use std::fmt::Write;

use brewbench::results::{api::rejudge::RejudgeBody, rejudge::Rejudged};
use clap::Args;

use crate::{common::Common, run::which::full_id, table::plain};

/// Re-judge runs.
#[derive(Debug, Args)]
pub struct Rejudge {
    #[command(flatten)]
    common: Common,
    /// Run ids, or their last characters
    #[arg(required_unless_present_any = ["scenario", "all"])]
    ids: Vec<String>,
    /// Re-judge all runs of this scenario
    #[arg(long, conflicts_with = "ids")]
    scenario: Option<String>,
    /// Re-judge all runs with results
    #[arg(long, conflicts_with_all = ["ids", "scenario"])]
    all: bool,
    /// Show what would change, without storing it
    #[arg(long)]
    dry_run: bool,
}

impl Rejudge {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, ids, scenario, all, dry_run } = self;
        let connection = common.connect()?;
        let mut full = Vec::new();
        for id in &ids {
            full.push(full_id(&connection, id).await?);
        }
        let ids = (!all && scenario.is_none()).then_some(full);
        let mut body = RejudgeBody { ids, scenario, dry_run, after: 0 };
        let mut total = Rejudged::default();
        loop {
            let Rejudged { judged, changed, damaged, next } =
                connection.client.post("api/v1/runs/rejudge", &body).await?;
            total.judged += judged;
            total.changed.extend(changed);
            total.damaged.extend(damaged);
            let Some(next) = next else { break };
            eprintln!("{} judged so far, {} verdicts changed", total.judged, total.changed.len());
            body.after = next;
        }
        common.print(&total, |total| text(total, dry_run))
    }
}

fn text(total: &Rejudged, dry_run: bool) -> String {
    let mut text = String::new();
    for change in &total.changed {
        let _ = writeln!(text, "{}  {} → {}", plain(change.run.as_str()), change.from.as_str(), change.to.as_str());
    }
    for run in &total.damaged {
        let _ = writeln!(text, "{}  not re-judged: {}", plain(run.run.as_str()), plain(&run.reason));
    }
    let would = if dry_run { "would change" } else { "changed" };
    let _ = writeln!(
        text,
        "{} judged, {} {would}, {} not re-judged",
        total.judged,
        total.changed.len(),
        total.damaged.len()
    );
    text
}
