//! `brewbench retention`

use brewbench::{
    maintenance::retention::{Reduction, Retention, RetentionRule},
    web::time_ago::exact,
};
use clap::Args;
use reqwest::Method;

use super::table::plain;
use crate::common::Common;

/// Show or set how long time series are kept. Metrics and verdicts of runs are always kept.
#[derive(Debug, Args)]
pub struct RetentionCommand {
    #[command(flatten)]
    common: Common,
    /// Days after which series are downsampled to one point per ten seconds
    #[arg(long, value_name = "DAYS", conflicts_with_all = ["delete_after", "off"])]
    downsample_after: Option<u32>,
    /// Days after which series are deleted
    #[arg(long, value_name = "DAYS", conflicts_with = "off")]
    delete_after: Option<u32>,
    /// Keep series forever, the default
    #[arg(long)]
    off: bool,
}

impl RetentionCommand {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        const PATH: &str = "api/v1/retention";
        let Self { common, downsample_after, delete_after, off } = self;
        let client = common.connect()?.client;
        let rule = |reduction| move |after_days| RetentionRule { after_days, reduction };
        let requested =
            downsample_after.map(rule(Reduction::Downsample)).or_else(|| delete_after.map(rule(Reduction::Delete)));
        if off {
            client.delete(PATH).await?;
        }
        let current: Retention = match requested {
            Some(rule) => client.json(client.request(Method::PUT, PATH).json(&rule)).await?,
            None => client.get(PATH).await?,
        };
        common.print(&current, text)
    }
}

fn text(current: &Retention) -> String {
    match (&current.rule, &current.set_by) {
        (Some(rule), Some(who)) => {
            format!("series are {}; set by {} {}\n", rule.describe(), plain(who), exact(current.set_at_ms))
        }
        (Some(rule), None) => format!("series are {}\n", rule.describe()),
        (None, _) => "series are kept forever\n".to_owned(),
    }
}
