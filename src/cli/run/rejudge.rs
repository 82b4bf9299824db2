//! `brewbench run rejudge`

use std::fmt::Write;

use clap::Args;

use crate::{
    cli::{common::Common, run::which::full_id, table::plain},
    results::{api::rejudge::RejudgeBody, rejudge::Rejudged},
};

/// `run rejudge`
#[derive(Debug, Args)]
pub struct Rejudge {
    #[command(flatten)]
    common: Common,
    /// Ids of runs, or the ends of them
    #[arg(required_unless_present_any = ["scenario", "all"])]
    ids: Vec<String>,
    /// All runs of this scenario
    #[arg(long, conflicts_with = "ids")]
    scenario: Option<String>,
    /// All runs that have figures
    #[arg(long, conflicts_with_all = ["ids", "scenario"])]
    all: bool,
    /// Keep nothing; only tell what would change
    #[arg(long)]
    dry_run: bool,
}

impl Rejudge {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, ids, scenario, all, dry_run } = self;
        let connection = common.connect()?;
        let mut full = Vec::new();
        for id in &ids {
            full.push(full_id(&connection, id).await?);
        }
        let ids = (!all && scenario.is_none()).then_some(full);
        let mut body = RejudgeBody { ids, scenario, dry_run, after: 0 };
        let mut whole = Rejudged::default();
        loop {
            let Rejudged { judged, changed, damaged, next } =
                connection.client.post("api/v1/runs/rejudge", &body).await?;
            whole.judged += judged;
            whole.changed.extend(changed);
            whole.damaged.extend(damaged);
            let Some(next) = next else { break };
            eprintln!("{} judged so far, {} verdicts changed", whole.judged, whole.changed.len());
            body.after = next;
        }
        common.print(&whole, |whole| text(whole, dry_run))
    }
}

fn text(whole: &Rejudged, dry_run: bool) -> String {
    let mut text = String::new();
    for change in &whole.changed {
        let _ = writeln!(text, "{}  {} → {}", plain(change.run.as_str()), change.from.as_str(), change.to.as_str());
    }
    for run in &whole.damaged {
        let _ = writeln!(text, "{}  keeps its verdict: {}", plain(run.run.as_str()), plain(&run.why));
    }
    let would = if dry_run { "would change" } else { "changed" };
    let _ =
        writeln!(text, "{} judged, {} {would}, {} can't be", whole.judged, whole.changed.len(), whole.damaged.len());
    text
}
