//! `brewbench alert` and `brewbench alert rule`

use brewbench::{
    alerts::{
        Thresholds,
        model::{Alert as AlertData, AlertList, AlertRule},
    },
    web::time_ago::exact,
};
use brewbench_wire::now_ms;
use clap::{Args, Subcommand};
use reqwest::Method;

use super::{
    duration,
    table::{left, plain},
};
use crate::common::Common;

/// List active alerts; `alert rule` sets the thresholds.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Alert {
    #[command(subcommand)]
    command: Option<AlertCommand>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum AlertCommand {
    /// Show or set the thresholds of alerts
    Rule {
        #[command(flatten)]
        common: Common,
        /// Alert when an agent has been disconnected for this long, e.g. 5m or 1h
        #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
        agent_away: Option<u32>,
        /// Alert when runs have been queued for this long and none has started
        #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
        queue_standstill: Option<u32>,
    },
}

fn whole_seconds(text: &str) -> Result<u32, String> {
    let seconds = duration::seconds(text)?;
    if seconds.fract() != 0.0 || !(1.0..=f64::from(u32::MAX)).contains(&seconds) {
        return Err("must be whole seconds, at least 1s".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok(seconds as u32)
}

impl Alert {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        const RULE: &str = "api/v1/alert-rule";
        let Self { command, common } = self;
        let Some(AlertCommand::Rule { common, agent_away, queue_standstill }) = command else {
            let list: AlertList = common.connect()?.client.get("api/v1/alerts").await?;
            return common.print(&list, lines);
        };
        let client = common.connect()?.client;
        let mut current: AlertRule = client.get(RULE).await?;
        if agent_away.is_some() || queue_standstill.is_some() {
            let rule = Thresholds {
                agent_away_s: agent_away.unwrap_or(current.rule.agent_away_s),
                queue_standstill_s: queue_standstill.unwrap_or(current.rule.queue_standstill_s),
            };
            current = client.json(client.request(Method::PUT, RULE).json(&rule)).await?;
        }
        common.print(&current, rule_text)
    }
}

fn lines(list: &AlertList) -> String {
    if list.alerts.is_empty() {
        return "no active alerts\n".to_owned();
    }
    let line = |alert: &AlertData| {
        format!("{}, for {}\n  {}\n", plain(&alert.sentence), left(now_ms() - alert.since_ms), plain(&alert.url))
    };
    list.alerts.iter().map(line).collect()
}

fn rule_text(current: &AlertRule) -> String {
    let Thresholds { agent_away_s, queue_standstill_s } = current.rule;
    let time = |seconds: u32| duration::text(f64::from(seconds));
    let by = current
        .set_by
        .as_ref()
        .map_or("default thresholds".to_owned(), |who| format!("set by {} {}", plain(who), exact(current.set_at_ms)));
    format!(
        "alert when an agent has been disconnected for {}\nalert when the queue has not moved for {}\n{by}\n",
        time(agent_away_s),
        time(queue_standstill_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_whole_seconds() {
        assert_eq!((whole_seconds("5m"), whole_seconds("1h30m")), (Ok(300), Ok(5_400)));
        for bad in ["0s", "500ms", "-1s", "soon"] {
            assert!(whole_seconds(bad).is_err(), "{bad}");
        }
    }
}
