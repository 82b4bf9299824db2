//! `brewbench scenario limits`

use std::collections::BTreeMap;

use anyhow::anyhow;
use brewbench::{
    results::{
        api::limits::{LimitInfo, LimitList, NewLimits},
        verdict::limits::{Limit, unknown},
    },
    web::time_ago::exact,
};
use clap::Args;
use reqwest::Method;

use super::table::{plain, table};
use crate::{common::Common, connection::encoded};

/// Show or set the limits of a scenario.
#[derive(Debug, Args)]
pub struct LimitsCommand {
    #[command(flatten)]
    common: Common,
    /// The scenario's name
    name: String,
    /// Set a limit, e.g. `generator_busy=0.95`, `generator_busy=95%` or `too_short=5s`; repeatable. Other limits stay,
    /// and existing runs are judged again
    #[arg(long = "set", value_name = "LIMIT=VALUE", value_parser = crate::common::pair)]
    set: Vec<(String, String)>,
    /// Reset all limits to their defaults
    #[arg(long, conflicts_with = "set")]
    reset: bool,
}

impl LimitsCommand {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, name, set, reset } = self;
        let client = common.connect()?.client;
        let path = format!("api/v1/scenarios/{}/limits", encoded(&name));
        let list: LimitList = if reset {
            client.json(client.request(Method::DELETE, &path)).await?
        } else if set.is_empty() {
            client.get(&path).await?
        } else {
            let list: LimitList = client.get(&path).await?;
            let new = NewLimits { limits: changed(&list.limits, &set)? };
            client.json(client.request(Method::PUT, &path).json(&new)).await?
        };
        common.print(&list, text)
    }
}

/// Returns all limits that differ from their defaults: the current ones and the new ones.
fn changed(limits: &[LimitInfo], set: &[(String, String)]) -> anyhow::Result<BTreeMap<String, f64>> {
    let differs = |info: &&LimitInfo| info.value.total_cmp(&info.default).is_ne();
    let mut all: BTreeMap<String, f64> =
        limits.iter().filter(differs).map(|info| (info.name.clone(), info.value)).collect();
    for (name, value) in set {
        let limit = Limit::find(name).ok_or_else(|| anyhow!(unknown(name)))?;
        all.insert(name.clone(), limit.parse(value).map_err(|fault| anyhow!(fault))?);
    }
    Ok(all)
}

fn text(list: &LimitList) -> String {
    let row = |info: &LimitInfo| {
        let mark = if info.value.total_cmp(&info.default).is_ne() { "*" } else { "" };
        let value = format!("{}{mark}", info.unit.text(info.value));
        vec![plain(&info.name), value, info.unit.text(info.default), plain(&info.description)]
    };
    let head = ["limit", ">value", ">default", "description"];
    let table = table(&head, &list.limits, row);
    match (&list.changed_by, list.changed_at_ms) {
        (Some(who), at) => format!("{table}* differs from the default; changed by {} {}\n", plain(who), exact(at)),
        (None, _) => table,
    }
}

#[cfg(test)]
mod tests {
    use brewbench::runs::verdict::Unit;

    use super::*;

    fn info(name: &str, value: f64, default: f64) -> LimitInfo {
        let (name, description, reason) = (name.to_owned(), String::new(), String::new());
        LimitInfo { name, value, default, unit: Unit::Seconds, description, reason }
    }

    #[test]
    fn earlier_limits_stay_and_invalid_ones_are_refused() {
        let list = [info("too_short", 2.0, 3.0), info("clock_jumped", 100.0, 100.0)];
        let set = |name: &str, value: &str| changed(&list, &[(name.to_owned(), value.to_owned())]);
        let both = BTreeMap::from([("generator_busy".to_owned(), 0.95), ("too_short".to_owned(), 2.0)]);
        assert_eq!(set("generator_busy", "95%").expect("a limit"), both);
        assert!(set("generator_busy", "very").expect_err("no number").to_string().starts_with("generator_busy: "));
        assert!(set("beauty", "1").expect_err("no limit").to_string().contains("generator_busy"));
    }
}
