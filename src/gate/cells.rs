//! The cells of a gate: pairs of targets from baseline and candidate, one cell for each setting. Pure.

use std::collections::BTreeSet;

use brewbench_wire::target::PARTIAL;

use crate::{
    compare::selection::{By, select},
    runs::{code::code_of, model::Run},
    web::series_style::Marks,
};

/// One side of the gate, as requested.
#[derive(Clone, Debug, PartialEq)]
pub struct GateSide {
    /// `baseline` or `candidate`, for messages.
    pub role: &'static str,
    /// Its runs.
    pub runs: Vec<Run>,
    /// The requested target, `name` or `name@version`.
    pub target: Option<String>,
}

/// Runs of both sides in one setting. Their circumstances may still differ.
#[derive(Clone, Debug, PartialEq)]
pub struct GateCell {
    /// The target and its setting.
    pub name: String,
    /// Runs of the baseline.
    pub baseline: Vec<Run>,
    /// Runs of the candidate.
    pub candidate: Vec<Run>,
}

impl GateCell {
    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.baseline.iter().chain(&self.candidate)
    }

    /// Returns the time in which one of its runs was in progress, seconds: those of a duet run at the same time.
    pub fn measured_s(&self) -> f64 {
        let mut spans: Vec<_> = self.runs().filter_map(|run| Some((run.started_at_ms?, run.finished_at_ms?))).collect();
        spans.sort_unstable();
        let (mut until, mut took_ms) = (i64::MIN, 0);
        for (from, to) in spans {
            took_ms += (to - from.max(until)).max(0);
            until = until.max(to);
        }
        took_ms as f64 / 1_000.0
    }

    /// Returns the code that all runs of both sides measured; none if it differs or is not known as a whole.
    pub fn same_code(&self) -> Option<String> {
        let is_whole = |code: &String| !code.starts_with(PARTIAL);
        let mut codes = self.runs().filter(|run| run.counts()).map(|run| code_of(run).filter(is_whole));
        let first = codes.next()??;
        let both = [&self.baseline, &self.candidate].into_iter().all(|runs| runs.iter().any(Run::counts));
        (both && codes.all(|code| code.as_ref() == Some(&first))).then_some(first)
    }
}

/// A target in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TargetVersion {
    target: String,
    version: Option<String>,
}

impl TargetVersion {
    fn key(&self) -> String {
        self.version.as_ref().map_or_else(|| self.target.clone(), |version| format!("{}@{version}", self.target))
    }

    fn matches(&self, requested: &str) -> bool {
        self.target == requested || self.key() == requested
    }

    /// Whether a run belongs to it. A run that failed before its version was known belongs to every version.
    fn has(&self, run: &Run) -> bool {
        let failed_early = run.version.is_none() && !run.counts();
        run.spec.target == self.target && (failed_early || run.version == self.version)
    }
}

/// Finds the cells. Fails with a message if the targets are ambiguous.
pub fn cells(baseline: &GateSide, candidate: &GateSide) -> Result<Vec<GateCell>, String> {
    let pairs = pairs(baseline, candidate)?;
    let itself = |(base, new): &&(TargetVersion, TargetVersion)| base == new && baseline.runs == candidate.runs;
    if let Some((target, _)) = pairs.iter().find(itself) {
        let target = target.key();
        return Err(format!(
            "{target} would be compared with itself: choose two targets with --baseline-target and --candidate-target"
        ));
    }
    let several = pairs.len() > 1;
    Ok(pairs.iter().flat_map(|(base, new)| pair_cells(baseline, candidate, base, new, several)).collect())
}

fn pair_cells(
    baseline: &GateSide,
    candidate: &GateSide,
    base: &TargetVersion,
    new: &TargetVersion,
    several: bool,
) -> Vec<GateCell> {
    let runs = |side: &GateSide, target: &TargetVersion| -> Vec<Run> {
        side.runs.iter().filter(|run| target.has(run)).cloned().collect()
    };
    let (baseline, candidate) = (runs(baseline, base), runs(candidate, new));
    let ids: BTreeSet<_> = baseline.iter().map(|run| run.id.clone()).collect();
    let selection = select(baseline.into_iter().chain(candidate).collect(), &Marks::default(), By::Target);
    let name = |label: &str| match (several, label) {
        (true, _) => format!("{}: {label}", new.target),
        (false, label) => label.to_owned(),
    };
    let mut cells: Vec<GateCell> = selection
        .settings
        .iter()
        .map(|setting| GateCell { name: name(&setting.label), baseline: Vec::new(), candidate: Vec::new() })
        .collect();
    for group in selection.groups {
        for run in group.runs {
            let cell = &mut cells[group.setting];
            if ids.contains(&run.id) { cell.baseline.push(run) } else { cell.candidate.push(run) }
        }
    }
    cells
}

/// Pairs the targets: the requested ones, else the only ones, else those with equal names if both sides have the same
/// names.
fn pairs(baseline: &GateSide, candidate: &GateSide) -> Result<Vec<(TargetVersion, TargetVersion)>, String> {
    let (bases, news) = (targets(baseline)?, targets(candidate)?);
    match (bases.as_slice(), news.as_slice()) {
        ([base], [new]) => return Ok(vec![(base.clone(), new.clone())]),
        ([base], _) if baseline.target.is_some() => {
            return one_of(candidate, &news).map(|new| vec![(base.clone(), new)]);
        }
        (_, [new]) if candidate.target.is_some() => {
            return one_of(baseline, &bases).map(|base| vec![(base, new.clone())]);
        }
        _ => {}
    }
    let names = |all: &[TargetVersion]| all.iter().map(|one| one.target.clone()).collect::<BTreeSet<_>>();
    let unique = |all: &[TargetVersion]| names(all).len() == all.len();
    if names(&bases) == names(&news) && unique(&bases) && unique(&news) {
        return Ok(bases.into_iter().zip(news).collect());
    }
    let side = if news.len() > 1 { (candidate, &news) } else { (baseline, &bases) };
    one_of(side.0, side.1).map(|_| Vec::new())
}

/// Returns the targets of a side by name and version, or the requested one.
fn targets(side: &GateSide) -> Result<Vec<TargetVersion>, String> {
    let names: BTreeSet<&str> = side.runs.iter().map(|run| run.spec.target.as_str()).collect();
    let mut all = Vec::new();
    for name in names {
        let of_name = side.runs.iter().filter(|run| run.spec.target == name);
        let versions: BTreeSet<Option<&String>> =
            of_name.filter(|run| run.version.is_some() || run.counts()).map(|run| run.version.as_ref()).collect();
        let target = |version: Option<&String>| TargetVersion { target: name.to_owned(), version: version.cloned() };
        if versions.is_empty() {
            all.push(target(None));
        }
        all.extend(versions.into_iter().map(target));
    }
    let Some(requested) = &side.target else { return Ok(all) };
    let matching: Vec<TargetVersion> = all.iter().filter(|one| one.matches(requested)).cloned().collect();
    match matching.len() {
        0 => Err(format!("the {} has no target {requested:?}; it has {}", side.role, listed(&all))),
        1 => Ok(matching),
        _ => {
            Err(format!("the {} has several versions of {requested:?}: choose one of {}", side.role, listed(&matching)))
        }
    }
}

fn one_of(side: &GateSide, all: &[TargetVersion]) -> Result<TargetVersion, String> {
    match all {
        [one] => Ok(one.clone()),
        _ => Err(format!(
            "the {} has several targets, {}: choose one with --{}-target",
            side.role,
            listed(all),
            side.role
        )),
    }
}

fn listed(all: &[TargetVersion]) -> String {
    let keys: Vec<String> = all.iter().map(TargetVersion::key).collect();
    if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{run, sized};

    fn thrice(make: impl Fn(u32) -> Run) -> Vec<Run> {
        (1..=3).map(make).collect()
    }

    fn side(role: &'static str, runs: Vec<Run>) -> GateSide {
        let runs = runs.into_iter().map(|run| Run { id: format!("{role} {}", run.id).into(), ..run }).collect();
        GateSide { role, runs, target: None }
    }

    fn versioned(version: &str, target: &str) -> Vec<Run> {
        thrice(|n| Run {
            version: Some(version.to_owned()),
            id: format!("{target}-{version}-{n}").into(),
            ..run(target, n)
        })
    }

    fn named_counts(baseline: Vec<Run>, candidate: Vec<Run>) -> Result<Vec<(String, usize, usize)>, String> {
        let cells = cells(&side("baseline", baseline), &side("candidate", candidate))?;
        Ok(cells.into_iter().map(|cell| (cell.name, cell.baseline.len(), cell.candidate.len())).collect())
    }

    #[test]
    fn the_only_targets_are_paired_whatever_their_names() {
        let cells = named_counts(versioned("1.0", "servy"), versioned("2.0", "servy-next")).expect("cells");
        assert_eq!(cells, [("hash · 10 VUs · 2 vCPU / 4 GiB".to_owned(), 3, 3)]);
        let same = named_counts(versioned("dev", "servy"), versioned("dev", "servy")).expect("cells");
        assert_eq!((same[0].1, same[0].2), (3, 3));
    }

    #[test]
    fn each_setting_is_a_cell_even_if_one_side_has_no_runs() {
        let sizes = |vcpus: &[f64]| vcpus.iter().map(|vcpus| sized("servy", 1, *vcpus)).collect::<Vec<_>>();
        let cells = named_counts(sizes(&[1.0, 2.0]), sizes(&[2.0, 4.0])).expect("cells");
        let counts: Vec<_> = cells.iter().map(|(_, base, new)| (*base, *new)).collect();
        assert_eq!(counts, [(1, 0), (1, 1), (0, 1)]);
    }

    #[test]
    fn several_targets_are_paired_by_name_if_both_sides_have_the_same_names() {
        let both = |version| [versioned(version, "a"), versioned(version, "b")].concat();
        let cells = named_counts(both("1.0"), both("2.0")).expect("cells");
        let names: Vec<_> = cells.iter().map(|(name, ..)| name.split(':').next().unwrap_or_default()).collect();
        assert_eq!(names, ["a", "b"]);
        let fault = named_counts(versioned("1.0", "a"), both("2.0")).expect_err("which?");
        assert_eq!(fault, "the candidate has several targets, a@2.0, b@2.0: choose one with --candidate-target");
    }

    #[test]
    fn no_target_is_compared_with_itself() {
        let runs = [versioned("1.0", "a"), versioned("1.0", "b")].concat();
        let side =
            |role, target: Option<&str>| GateSide { role, runs: runs.clone(), target: target.map(str::to_owned) };
        let fault = cells(&side("baseline", None), &side("candidate", None)).expect_err("the same runs");
        assert!(fault.starts_with("a@1.0 would be compared with itself"), "{fault}");
        let cells = cells(&side("baseline", Some("a")), &side("candidate", Some("b"))).expect("cells");
        assert_eq!((cells[0].baseline.len(), cells[0].candidate.len()), (3, 3));
    }

    #[test]
    fn a_requested_target_is_used_and_an_unknown_one_is_an_error() {
        let runs = [versioned("1.0", "servy"), versioned("2.0", "servy")].concat();
        let choose = |base: &str, new: &str| {
            let one = GateSide { target: Some(base.to_owned()), ..side("baseline", runs.clone()) };
            let other = GateSide { target: Some(new.to_owned()), ..side("candidate", runs.clone()) };
            cells(&one, &other).map(|cells| cells[0].candidate[0].version.clone())
        };
        assert_eq!(choose("servy@1.0", "servy@2.0"), Ok(Some("2.0".to_owned())));
        let fault = choose("servy", "servy@2.0").expect_err("which version?");
        assert_eq!(fault, "the baseline has several versions of \"servy\": choose one of servy@1.0, servy@2.0");
        let fault = choose("servy@1.0", "nobody").expect_err("who?");
        assert_eq!(fault, "the candidate has no target \"nobody\"; it has servy@1.0, servy@2.0");
    }
}
