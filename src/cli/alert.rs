//! `brewbench alert` and `brewbench alert rule`

use brewbench_agent::wire::now_ms;
use clap::{Args, Subcommand};
use reqwest::Method;

use super::{
    duration,
    table::{left, plain},
};
use crate::{
    alerts::{
        Rule,
        model::{Alert as AlertData, AlertList, AlertRule},
    },
    cli::common::Common,
    web::time_ago::exact,
};

/// What somebody should look at.
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
    /// Say, or set, from when on something is an alert
    Rule {
        #[command(flatten)]
        common: Common,
        /// How long an agent may be away, as 5m or 1h
        #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
        agent_away: Option<u32>,
        /// How long runs may wait that nobody begins
        #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
        queue_standstill: Option<u32>,
    },
}

fn whole_seconds(text: &str) -> Result<u32, String> {
    let seconds = duration::seconds(text)?;
    if seconds.fract() != 0.0 || !(1.0..=f64::from(u32::MAX)).contains(&seconds) {
        return Err("whole seconds, one at least".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "looked at right above")]
    Ok(seconds as u32)
}

impl Alert {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        const RULE: &str = "api/v1/alert-rule";
        let Self { command, common } = self;
        let Some(AlertCommand::Rule { common, agent_away, queue_standstill }) = command else {
            let list: AlertList = common.connect()?.client.get("api/v1/alerts").await?;
            return common.print(&list, lines);
        };
        let client = common.connect()?.client;
        let mut now: AlertRule = client.get(RULE).await?;
        if agent_away.is_some() || queue_standstill.is_some() {
            let rule = Rule {
                agent_away_s: agent_away.unwrap_or(now.rule.agent_away_s),
                queue_standstill_s: queue_standstill.unwrap_or(now.rule.queue_standstill_s),
            };
            now = client.json(client.request(Method::PUT, RULE).json(&rule)).await?;
        }
        common.print(&now, rule_text)
    }
}

fn lines(list: &AlertList) -> String {
    if list.alerts.is_empty() {
        return "all is well: no agent has been away too long, and the queue does not stand still\n".to_owned();
    }
    let line = |alert: &AlertData| {
        format!("{}, for {}\n  {}\n", plain(&alert.sentence), left(now_ms() - alert.since_ms), plain(&alert.url))
    };
    list.alerts.iter().map(line).collect()
}

fn rule_text(now: &AlertRule) -> String {
    let Rule { agent_away_s, queue_standstill_s } = now.rule;
    let time = |seconds: u32| duration::text(f64::from(seconds));
    let by = now
        .set_by
        .as_ref()
        .map_or("as usual".to_owned(), |who| format!("set by {} {}", plain(who), exact(now.set_at_ms)));
    format!(
        "an agent is missed after {}\na queue stands still after {}\n{by}\n",
        time(agent_away_s),
        time(queue_standstill_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_one_of_whole_seconds() {
        assert_eq!((whole_seconds("5m"), whole_seconds("1h30m")), (Ok(300), Ok(5_400)));
        for bad in ["0s", "500ms", "-1s", "soon"] {
            assert!(whole_seconds(bad).is_err(), "{bad}");
        }
    }
}
