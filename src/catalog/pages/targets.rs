//! `/targets`: targets, the agents that offer them and their latest results; `/targets/{name}`: one target.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
};
use brewbench_wire::{manifest::source::split_target, target::TargetKind};
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, QueryParams, Result},
        state::AppState,
    },
    auth::{
        caller::{Admin, Read},
        model::Scope,
    },
    catalog::{identity::describe_code, model::Target},
    fleet::{
        self,
        presence::{Connected, Presence},
    },
    runs::{
        filter::Field,
        pages::row::ListedRun,
        store::latest::{self, TargetResult},
    },
    web::{
        address,
        confirm::Confirm,
        format::{self, Figure},
        series_style::Mark,
        shell::{Section, Shell},
        sparkline::Sparkline,
        time_ago::{self, RelativeTime},
    },
};

/// Number of results per target in the list.
const LATEST: i64 = 60;
/// Number of results on the page of one target.
const MAX_RESULTS: i64 = 600;
/// Targets per page of the list.
const PAGE: i64 = 100;
/// Maximum number of trends on the page of one target.
const MAX_TRENDS: usize = 24;

/// The list of targets.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "catalog/targets.html")]
struct TargetsPage {
    shell: Shell,
    lines: Vec<Summary>,
    /// Whether this is the first page.
    is_first: bool,
    /// Value of `after` for the next page.
    next: Option<String>,
    /// Number of unused targets; 0 for users who may not remove them.
    unused: usize,
}

/// One line of the list.
#[derive(Debug)]
struct Summary {
    name: String,
    mark: Mark,
    /// The version seen last; none if the target is only known from imports.
    newest: Option<Target>,
    versions: usize,
    /// Connected agents that offer it.
    offered_by: Vec<String>,
    /// Results in the setting of the last result.
    trend: Option<Trend>,
}

impl Summary {
    fn address(&self) -> String {
        address::segment(&self.name)
    }

    /// The version seen last; that of the last result if no agent has offered it by this name.
    fn version(&self) -> Option<&str> {
        let measured = || self.trend.as_ref()?.last.result.version.as_deref();
        self.newest.as_ref().map(|target| target.version.as_str()).or_else(measured)
    }
}

/// Results in one setting over time.
#[derive(Debug)]
struct Trend {
    setting: String,
    spark: Sparkline,
    /// The newest result.
    last: TargetResult,
    /// Number of suspect results.
    suspect: usize,
}

impl Trend {
    fn rps(&self) -> Figure {
        format::number(self.last.result.rps)
    }

    fn p99(&self) -> Figure {
        format::number(self.last.result.p99_ms)
    }

    fn when(&self) -> RelativeTime {
        time_ago::ago(self.last.result.finished_at_ms)
    }

    /// Whether the newest result is suspect.
    fn is_doubted(&self) -> bool {
        self.last.is_suspect()
    }

    /// Note on suspect results; empty if there are none.
    fn doubt(&self) -> String {
        if self.suspect > 0 { format!(", {} suspect", self.suspect) } else { String::new() }
    }
}

/// One target.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "catalog/target.html")]
struct TargetPage {
    shell: Shell,
    name: String,
    mark: Mark,
    versions: Vec<Version>,
    trends: Vec<Trend>,
    /// Number of settings that are not shown.
    more: usize,
    lines: Vec<ListedRun>,
    /// Whether it is unused and the user may remove it.
    may_remove: bool,
}

impl TargetPage {
    fn address(&self) -> String {
        address::segment(&self.name)
    }

    /// The versions that were offered with several codes.
    fn changed(&self) -> Vec<&str> {
        let changed = self.versions.iter().filter(|version| version.target.has_other_code);
        let mut versions: Vec<&str> = changed.map(|version| version.target.version.as_str()).collect();
        versions.dedup();
        versions
    }
}

/// One executable of a target.
#[derive(Debug)]
struct Version {
    target: Target,
    /// Connected agents that offer this version.
    offered_by: Vec<String>,
}

impl Version {
    /// The digest shortened; other identities are shown in full.
    fn short(&self) -> Option<String> {
        matches!(self.target.kind, TargetKind::Process | TargetKind::Vm)
            .then(|| describe_code(Some(&self.target.identity)))
    }

    fn seen(&self) -> (RelativeTime, RelativeTime) {
        (time_ago::ago(Some(self.target.first_seen_at_ms)), time_ago::ago(Some(self.target.last_seen_at_ms)))
    }
}

fn offered_by(connected: &[(String, Connected)], name: &str, identity: Option<&str>) -> Vec<String> {
    let (name, _) = split_target(name);
    let offers = |agent: &Connected| {
        let is_it = |offer: &brewbench_wire::messages::TargetOffer| {
            offer.name == name && identity.is_none_or(|identity| offer.identity.text() == identity)
        };
        agent.hello.targets.iter().any(is_it)
    };
    connected.iter().filter(|(_, agent)| offers(agent)).map(|(name, _)| name.clone()).collect()
}

/// Groups results by setting, newest first. Sizes, loads and agents are never mixed.
fn trends(results: Vec<TargetResult>) -> Vec<Trend> {
    let mut groups: Vec<Vec<TargetResult>> = Vec::new();
    for result in results {
        match groups.iter_mut().find(|group| group[0].has_setting_of(&result)) {
            Some(group) => group.push(result),
            None => groups.push(vec![result]),
        }
    }
    groups.into_iter().filter_map(trend).collect()
}

/// Builds the trend of one setting; `group` starts with the newest result.
fn trend(group: Vec<TargetResult>) -> Option<Trend> {
    let values = group.iter().rev().filter_map(|measured| measured.result.rps).collect();
    let suspect = group.iter().filter(|result| result.is_suspect()).count();
    let last = group.into_iter().next()?;
    Some(Trend { setting: last.describe(), spark: Sparkline::new(values, "requests/s"), last, suspect })
}

/// Page of the list of targets.
#[derive(Debug, Deserialize)]
pub struct Paging {
    #[serde(default)]
    after: String,
}

/// `GET /targets`
pub async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    QueryParams(Paging { after }): QueryParams<Paging>,
) -> Result<Response> {
    let pool = &state.db.read;
    let mut names = crate::catalog::store::names::after(pool, &after, PAGE + 1).await?;
    let is_last = i64::try_from(names.len()).is_ok_and(|count| count <= PAGE);
    names.truncate(usize::try_from(PAGE).unwrap_or(usize::MAX));
    let next = names.last().filter(|_| !is_last).map(|name| address::segment(name));
    let page: Vec<&str> = names.iter().map(String::as_str).collect();
    let marks = crate::catalog::store::marks(pool, &page).await?;
    let (known, connected) = (crate::catalog::store::of_names(pool, &page).await?, presence.list());
    let unused = if caller.scope == Scope::Admin { fleet::targets::unused(&state, &presence).await?.len() } else { 0 };
    let mut lines = Vec::new();
    for name in names {
        let versions: Vec<&Target> = known.iter().filter(|target| target.name == name).collect();
        let results = latest::results(pool, &name, LATEST).await?;
        lines.push(Summary {
            mark: marks.of(&name),
            newest: versions.first().copied().cloned(),
            versions: versions.len(),
            offered_by: offered_by(&connected, &name, None),
            trend: trends(results).into_iter().next(),
            name,
        });
    }
    let shell = Shell::signed_in("Targets", Section::Targets, &caller.name);
    Ok(TargetsPage { shell, lines, is_first: after.is_empty(), next, unused }.into_response())
}

/// `GET /targets/{name}`
pub async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Response> {
    let pool = &state.db.read;
    let is_known = async |name: &str| crate::catalog::store::names::is_known(pool, name).await;
    if !is_known(&name).await? {
        // A revision without results has no page of its own.
        let (target, revision) = split_target(&name);
        if revision.is_some() && is_known(target).await? {
            return Ok(Redirect::to(&format!("/targets/{}", address::segment(target))).into_response());
        }
        return Err(Error::NotFound(format!("target {name:?}")));
    }
    let connected = presence.list();
    let version =
        |target: Target| Version { offered_by: offered_by(&connected, &target.name, Some(&target.identity)), target };
    let mut trends = trends(latest::results(pool, &name, MAX_RESULTS).await?);
    let more = trends.len().saturating_sub(MAX_TRENDS);
    trends.truncate(MAX_TRENDS);
    let page = TargetPage {
        shell: Shell::signed_in(name.clone(), Section::Targets, &caller.name),
        mark: crate::catalog::store::marks(pool, &[&name]).await?.of(&name),
        versions: crate::catalog::store::of_names(pool, &[&name]).await?.into_iter().map(version).collect(),
        may_remove: caller.scope == Scope::Admin && fleet::targets::removable(&state, &presence, &name).await.is_ok(),
        trends,
        more,
        lines: crate::fleet::pages::newest_lines(&state, Field::Target, &name).await?,
        name,
    };
    Ok(page.into_response())
}

/// `GET /targets/{name}/remove`
pub async fn ask_remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    fleet::targets::removable(&state, &presence, &name).await?;
    let action = "Remove this target";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Targets, &caller.name),
        action,
        back: format!("/targets/{}", address::segment(&name)),
        what: name,
        consequences: vec![
            "All its versions are removed. No run has used them, so nothing else changes.".to_owned(),
            "It comes back as soon as an agent offers it again.".to_owned(),
        ],
    })
}

/// `GET /unused-targets/remove`: confirms removing all unused targets.
pub async fn ask_remove_unused(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Response> {
    let unused = fleet::targets::unused(&state, &presence).await?;
    if unused.is_empty() {
        return Ok(Redirect::to("/targets").into_response());
    }
    let action = "Remove these targets";
    let (shown, count) = (unused.iter().take(20).cloned().collect::<Vec<_>>().join(", "), unused.len());
    let page = Confirm {
        shell: Shell::signed_in(action, Section::Targets, &caller.name),
        action,
        what: if count > 20 { format!("{shown} and {} more", count - 20) } else { shown },
        consequences: vec![
            format!("No connected agent offers them, and no run uses them: {}.", format::plural(count, "target")),
            "Each comes back as soon as an agent offers it again.".to_owned(),
        ],
        back: "/targets".to_owned(),
    };
    Ok(page.into_response())
}

/// `POST /unused-targets/remove`
pub async fn remove_unused(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Redirect> {
    fleet::targets::remove_all(&state, &presence, &caller).await?;
    Ok(Redirect::to("/targets"))
}

/// `POST /targets/{name}/remove`
pub async fn remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    fleet::targets::remove_one(&state, &presence, &name, &caller).await?;
    Ok(Redirect::to("/targets"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{
        model::{RunSize, RunSpec},
        store::latest::Measurement,
    };

    fn result(size: &str, rps: f64) -> TargetResult {
        let spec = RunSpec {
            size: Some(RunSize { name: size.to_owned(), vcpus: 2.0, memory_bytes: 4 << 30, replicas: 1 }),
            scenario: Some("hash".to_owned()),
            parameters: [("N".to_owned(), "<5>".to_owned())].into(),
            vus: Some(10),
            duration_s: Some(10.0),
            warm_up_s: Some(2.0),
            ..RunSpec::default()
        };
        let result = Measurement {
            version: Some("1.0".to_owned()),
            agent: Some("rack".to_owned()),
            rps: Some(rps),
            p99_ms: Some(3.0),
            finished_at_ms: Some(0),
            verdict: Some("valid".to_owned()),
        };
        TargetResult { spec, result }
    }

    #[test]
    fn a_trend_has_one_setting_and_ends_with_the_newest_result() {
        let small = |rps| result("small", rps);
        let mut other_machine = small(1.0);
        other_machine.result.agent = Some("attic".to_owned());
        let all = trends(vec![small(300.0), result("big", 900.0), small(200.0), other_machine, small(100.0)]);
        let words: Vec<String> = all.iter().map(|trend| trend.spark.describe()).collect();
        assert_eq!(words[0], "3 results, from 100.0 to 300.0 requests/s, last 300.0");
        assert_eq!((all.len(), words[1].as_str()), (3, "1 result, 900.0 requests/s"));
        assert_eq!(all[0].doubt(), "");
        let mut odd = small(400.0);
        odd.result.verdict = Some("suspect".to_owned());
        let doubted = trends(vec![odd, small(100.0)]).remove(0);
        assert!(doubted.is_doubted() && doubted.doubt() == ", 1 suspect");
        assert_eq!(all[0].setting.replace('\u{a0}', " "), "small · hash · N=<5> · 10 VUs · 10 s · on rack");
    }
}
