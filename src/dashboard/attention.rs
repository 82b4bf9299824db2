//! What needs attention: alerts, a full disk, disconnected agents, and runs that failed, were lost or are invalid.

use crate::{
    app::alert_cache::ActiveAlert,
    auth::notices::Notice,
    fleet::model::Agent,
    runs::pages::row::ListedRun,
    settings::disk::Disk,
    web::{
        address::segment,
        badge::Badge,
        series_style::Mark,
        time_ago::{self, RelativeTime},
    },
};

/// The maximum number of notices about the account; its page has all.
const MAX_NOTICES: usize = 5;

/// One thing that needs attention.
#[derive(Debug)]
pub struct Item {
    /// A run's badge and its target's colour.
    pub state: Option<(Badge, Mark)>,
    /// What it is about.
    pub title: String,
    /// Where to look.
    pub href: String,
    /// Since when.
    pub when: Option<RelativeTime>,
    /// The reason; may be empty.
    pub reason: String,
}

/// Lists what a user's own account needs: new passkeys, tokens and logins, and tokens that expire soon.
pub fn of_account(notices: &[Notice], expiring: &[(String, i64)]) -> Vec<Item> {
    let new = notices.iter().take(MAX_NOTICES).map(|notice| Item {
        state: None,
        title: notice.describe(),
        href: "/account#notices".to_owned(),
        when: Some(time_ago::ago(Some(notice.at_ms))),
        reason: format!("{}. Check that it was you.", notice.origin()).trim_start_matches(". ").to_owned(),
    });
    let tokens = expiring.iter().map(|(name, expires_at_ms)| Item {
        state: None,
        title: format!("Token {name} expires"),
        href: "/tokens".to_owned(),
        when: Some(time_ago::ago(Some(*expires_at_ms))),
        reason: "Programs that use it are refused from then on. Create another one for them.".to_owned(),
    });
    new.chain(tokens).collect()
}

/// Lists what needs attention, the most urgent first. An agent with an alert is not listed again.
pub fn list(
    account: Vec<Item>,
    active_alerts: &[ActiveAlert],
    low: Option<&Disk>,
    away: &[Agent],
    broken: &[ListedRun],
) -> Vec<Item> {
    let alerts = active_alerts.iter().map(|alert| Item {
        state: None,
        title: alert.sentence.clone(),
        href: alert.href.clone(),
        when: Some(alert.began()),
        reason: String::new(),
    });
    let disk = low.map(|disk| Item {
        state: None,
        title: "The disk is nearly full".to_owned(),
        href: "/settings".to_owned(),
        when: None,
        reason: format!(
            "{} of {} are free. Results cannot be stored on a full disk.",
            disk.free_text().text(),
            disk.size_text().text()
        ),
    });
    let has_alert = |agent: &&Agent| active_alerts.iter().any(|alert| alert.subject == agent.name);
    let agents = away.iter().filter(|agent| !has_alert(agent)).map(|agent| Item {
        state: None,
        title: format!("{} is disconnected", agent.name),
        href: format!("/agents/{}", segment(&agent.name)),
        when: Some(time_ago::ago(agent.last_seen_at_ms)),
        reason: "It gets no runs until it connects.".to_owned(),
    });
    let runs = broken.iter().map(|line| Item {
        state: Some((line.state(), line.mark)),
        title: line.run.spec.target.clone(),
        href: format!("/runs/{}", line.run.id),
        when: Some(time_ago::ago(line.run.finished_at_ms)),
        reason: line.run.error.clone().unwrap_or_else(|| {
            line.run.reasons.iter().map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ")
        }),
    });
    account.into_iter().chain(alerts).chain(disk).chain(agents).chain(runs).collect()
}
