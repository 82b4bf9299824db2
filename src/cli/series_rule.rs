//! `brewbench series-rule`

use clap::Args;
use reqwest::Method;

use super::table::plain;
use crate::{
    cli::common::Common,
    maintenance::retention::{Reduction, Rule, SeriesRule},
    web::time_ago::exact,
};

/// Says how long series are kept, or sets it. Figures and verdicts of runs stay in any case.
#[derive(Debug, Args)]
pub struct SeriesRuleOf {
    #[command(flatten)]
    common: Common,
    /// So many days after a run's end, ten seconds of its series become one point
    #[arg(long, value_name = "DAYS", conflicts_with_all = ["delete_after", "off"])]
    thin_after: Option<u32>,
    /// So many days after a run's end, its series goes
    #[arg(long, value_name = "DAYS", conflicts_with = "off")]
    delete_after: Option<u32>,
    /// Keep series for ever, as at first
    #[arg(long)]
    off: bool,
}

impl SeriesRuleOf {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        const PATH: &str = "api/v1/series-rule";
        let Self { common, thin_after, delete_after, off } = self;
        let client = common.connect()?.client;
        let rule = |reduction| move |after_days| Rule { after_days, reduction };
        let asked = thin_after.map(rule(Reduction::Thin)).or_else(|| delete_after.map(rule(Reduction::Delete)));
        if off {
            client.delete(PATH).await?;
        }
        let now: SeriesRule = match asked {
            Some(rule) => client.json(client.request(Method::PUT, PATH).json(&rule)).await?,
            None => client.get(PATH).await?,
        };
        common.print(&now, text)
    }
}

fn text(now: &SeriesRule) -> String {
    match (&now.rule, &now.set_by) {
        (Some(rule), Some(who)) => {
            format!("series are {}; set by {} {}\n", rule.words(), plain(who), exact(now.set_at_ms))
        }
        (Some(rule), None) => format!("series are {}\n", rule.words()),
        (None, _) => "series are kept for ever\n".to_owned(),
    }
}
