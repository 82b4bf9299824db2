//! What needs attention, one line per cause with one action: the account, alerts, a full disk, disconnected agents, runs
//! without a result, and results that are not reliable.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{
    app::{alert_cache::ActiveAlert, ids::ExperimentId},
    auth::notices::Notice,
    compare::trust::{Trust, TrustLevel},
    dashboard::store::Broken,
    experiments::list::ListedExperiment,
    fleet::model::Agent,
    runs::filter::address,
    settings::disk::Disk,
    web::{
        address::segment,
        format::plural,
        series_style::{Mark, Marks},
        time_ago::{self, RelativeTime},
    },
};

/// The maximum number of notices about the account; its page has all.
const MAX_NOTICES: usize = 5;

/// The maximum number of causes of broken runs, the newest first.
const MAX_CAUSES: usize = 5;

/// One thing that needs attention.
#[derive(Debug)]
pub struct Item {
    /// The colour of the target that it is about.
    pub mark: Option<Mark>,
    /// What it is about.
    pub title: String,
    /// The reason; may be empty.
    pub reason: String,
    /// Since when.
    pub when: Option<RelativeTime>,
    /// Label and path of what to do.
    pub action: (&'static str, String),
}

impl Item {
    fn new(title: String, reason: impl Into<String>, at_ms: Option<i64>, action: (&'static str, String)) -> Self {
        let when = at_ms.map(|at_ms| time_ago::ago(Some(at_ms)));
        Self { mark: None, title, reason: reason.into(), when, action }
    }
}

/// Lists what a user's own account needs: new passkeys, tokens and logins, and tokens that expire soon.
pub fn of_account(notices: &[Notice], expiring: &[(String, i64)]) -> Vec<Item> {
    let new = notices.iter().take(MAX_NOTICES).map(|notice| {
        let reason = format!("{}. Check that it was you.", notice.origin());
        let action = ("Check", "/account#notices".to_owned());
        Item::new(notice.describe(), reason.trim_start_matches(". "), Some(notice.at_ms), action)
    });
    let tokens = expiring.iter().map(|(name, expires_at_ms)| {
        let action = ("Replace it", "/tokens".to_owned());
        let reason = "Programs that use it are refused from then on.";
        Item::new(format!("Token {name} expires"), reason, Some(*expires_at_ms), action)
    });
    new.chain(tokens).collect()
}

/// Lists what the site needs. An agent with an alert is not listed again.
pub fn of_site(active_alerts: &[ActiveAlert], low: Option<&Disk>, away: &[Agent]) -> Vec<Item> {
    let alerts = active_alerts.iter().map(|alert| Item {
        when: Some(alert.began()),
        ..Item::new(alert.sentence.clone(), "", None, ("Show", alert.href.clone()))
    });
    let disk = low.map(|disk| {
        let (free, size) = (disk.free_text(), disk.size_text());
        let reason = format!("{} of {} are free. Results cannot be stored on a full disk.", free.text(), size.text());
        Item::new("The disk is nearly full".to_owned(), reason, None, ("Delete data", "/settings".to_owned()))
    });
    let has_alert = |agent: &&Agent| active_alerts.iter().any(|alert| alert.subject == agent.name);
    let agents = away.iter().filter(|agent| !has_alert(agent)).map(|agent| {
        let action = ("Show agent", format!("/agents/{}", segment(&agent.name)));
        let reason = "It gets no runs until it connects.";
        Item::new(format!("{} is disconnected", agent.name), reason, agent.last_seen_at_ms, action)
    });
    alerts.chain(disk).chain(agents).collect()
}

/// Lists the causes of runs without a result, newest first, and counts the runs of further causes.
///
/// A cause is a target with a reason; figures in the reason do not matter.
pub fn of_runs(broken: &[Broken], marks: &Marks) -> (Vec<Item>, usize) {
    let mut causes: Vec<(&Broken, usize)> = Vec::new();
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for run in broken {
        let reason: String = run.reason.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        match known.entry((&run.target, run.what, reason)) {
            Entry::Occupied(place) => causes[*place.get()].1 += 1,
            Entry::Vacant(free) => {
                free.insert(causes.len());
                causes.push((run, 1));
            }
        }
    }
    let further = causes.iter().skip(MAX_CAUSES).map(|(_, count)| count).sum();
    let item = |(run, count): (&Broken, usize)| {
        let filter = if run.what == "invalid" { "verdict" } else { "phase" };
        let action = match count {
            1 => ("Show run", format!("/runs/{}", run.id)),
            _ => ("Show runs", address("/runs", &[("target", &run.target), (filter, run.what)])),
        };
        let title = format!("{}: {} {}", run.target, plural(count, "run"), run.what);
        Item { mark: Some(marks.of(&run.target)), ..Item::new(title, &run.reason, Some(run.at_ms), action) }
    };
    (causes.into_iter().take(MAX_CAUSES).map(item).collect(), further)
}

/// Lists why results are not reliable, one line per cause. `may_submit` says whether the user may measure again.
pub fn of_results(lines: &[ListedExperiment], may_submit: bool) -> Vec<Item> {
    let mut causes: BTreeMap<Option<&String>, Vec<(&ListedExperiment, &Trust)>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.progress.is_over()) {
        let Some(trust) = line.answer.as_ref().map(|answer| &answer.trust) else { continue };
        if trust.level == TrustLevel::Unreliable {
            causes.entry(trust.codes.first()).or_default().push((line, trust));
        }
    }
    let path = |id: &ExperimentId| {
        if may_submit {
            ("Run again", format!("/experiments/new?experiment={id}"))
        } else {
            ("Show", format!("/experiments/{id}"))
        }
    };
    let item = |results: Vec<(&ListedExperiment, &Trust)>| {
        let (newest, trust) = results.first()?;
        let (title, action) = match results.len() {
            1 => (format!("{}: not reliable", newest.experiment.name), path(&newest.experiment.id)),
            count => (format!("{count} results are not reliable"), ("What to do", "/docs/guide/doctor".to_owned())),
        };
        Some(Item::new(title, &trust.text, Some(newest.experiment.created_at_ms), action))
    };
    causes.into_values().filter_map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(target: &str, what: &'static str, reason: &str) -> Broken {
        let id = format!("{target}-{}", reason.len()).into();
        Broken { id, target: target.to_owned(), what, reason: reason.to_owned(), at_ms: 1_772_626_394_000 }
    }

    #[test]
    fn runs_with_one_cause_are_one_line_with_one_action() {
        let all = [
            broken("hello", "invalid", "134 of 268 checks failed"),
            broken("hello", "invalid", "135 of 270 checks failed"),
            broken("hello", "failed", "the port was taken"),
            broken("other", "invalid", "134 of 268 checks failed"),
        ];
        let (items, further) = of_runs(&all, &Marks::default());
        let lines: Vec<_> =
            items.iter().map(|item| (item.title.as_str(), item.action.0, item.action.1.as_str())).collect();
        assert_eq!(
            lines,
            [
                ("hello: 2 runs invalid", "Show runs", "/runs?target=hello&verdict=invalid"),
                ("hello: 1 run failed", "Show run", "/runs/hello-18"),
                ("other: 1 run invalid", "Show run", "/runs/other-24"),
            ]
        );
        assert_eq!((items[0].reason.as_str(), further), ("134 of 268 checks failed", 0), "the newest reason");
    }

    #[test]
    fn further_causes_are_counted() {
        let all: Vec<Broken> = ('a'..='h').map(|name| broken(&name.to_string(), "lost", "gone")).collect();
        let (items, further) = of_runs(&all, &Marks::default());
        assert_eq!((items.len(), further), (MAX_CAUSES, 3));
        assert!(of_runs(&[], &Marks::default()).0.is_empty());
    }
}
