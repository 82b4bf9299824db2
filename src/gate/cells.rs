//! What of a candidate is held against what of a baseline: targets in pairs, and of each what ran in one setting. Pure.

use std::collections::BTreeSet;

use crate::{
    compare::selection::{By, select},
    runs::model::Run,
    web::series_style::Marks,
};

/// One side, as somebody named it.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// `baseline` or `candidate`, for sentences.
    pub role: &'static str,
    /// Its runs.
    pub runs: Vec<Run>,
    /// The target that is meant, `name` or `name@version`, if somebody said.
    pub target: Option<String>,
}

/// Runs of both sides that may be held against each other, but for their surroundings.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Which target, under what.
    pub name: String,
    /// Of the baseline.
    pub baseline: Vec<Run>,
    /// Of the candidate.
    pub candidate: Vec<Run>,
}

/// A target in one version, where several of one name ran.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Who {
    target: String,
    version: Option<String>,
}

impl Who {
    fn key(&self) -> String {
        self.version.as_ref().map_or_else(|| self.target.clone(), |version| format!("{}@{version}", self.target))
    }

    fn is_meant(&self, wanted: &str) -> bool {
        self.target == wanted || self.key() == wanted
    }

    /// A run that never got as far as knowing its version belongs to every version; one with figures is another program.
    fn has(&self, run: &Run) -> bool {
        let never_knew = run.version.is_none() && !run.counts();
        run.target == self.target && (never_knew || run.version == self.version)
    }
}

/// Finds the cells; fails with a sentence where it is not clear which targets are meant.
pub fn cells(baseline: &Side, candidate: &Side) -> Result<Vec<Cell>, String> {
    let pairs = pairs(baseline, candidate)?;
    let itself = |(base, new): &&(Who, Who)| base == new && baseline.runs == candidate.runs;
    if let Some((who, _)) = pairs.iter().find(itself) {
        let who = who.key();
        return Err(format!(
            "{who} would be held against itself: name two with --baseline-target and --candidate-target"
        ));
    }
    let several = pairs.len() > 1;
    Ok(pairs.iter().flat_map(|(base, new)| of_pair(baseline, candidate, base, new, several)).collect())
}

fn of_pair(baseline: &Side, candidate: &Side, base: &Who, new: &Who, several: bool) -> Vec<Cell> {
    let of = |side: &Side, who: &Who| side.runs.iter().filter(|run| who.has(run)).cloned().collect::<Vec<Run>>();
    let (baseline, candidate) = (of(baseline, base), of(candidate, new));
    let ids: BTreeSet<_> = baseline.iter().map(|run| run.id.clone()).collect();
    let selection = select(baseline.into_iter().chain(candidate).collect(), &Marks::default(), By::Target);
    let name = |label: &str| match (several, label) {
        (true, _) => format!("{}: {label}", new.target),
        (false, label) => label.to_owned(),
    };
    let mut cells: Vec<Cell> = selection
        .settings
        .iter()
        .map(|setting| Cell { name: name(&setting.label), baseline: Vec::new(), candidate: Vec::new() })
        .collect();
    for group in selection.groups {
        for run in group.runs {
            let cell = &mut cells[group.setting];
            if ids.contains(&run.id) { cell.baseline.push(run) } else { cell.candidate.push(run) }
        }
    }
    cells
}

/// Which target is held against which: those that are named; else the only ones; else those of one name, if both sides
/// have the same names.
fn pairs(baseline: &Side, candidate: &Side) -> Result<Vec<(Who, Who)>, String> {
    let (bases, news) = (meant(baseline)?, meant(candidate)?);
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
    let names = |all: &[Who]| all.iter().map(|who| who.target.clone()).collect::<BTreeSet<_>>();
    let unique = |all: &[Who]| names(all).len() == all.len();
    if names(&bases) == names(&news) && unique(&bases) && unique(&news) {
        return Ok(bases.into_iter().zip(news).collect());
    }
    let side = if news.len() > 1 { (candidate, &news) } else { (baseline, &bases) };
    one_of(side.0, side.1).map(|_| Vec::new())
}

/// Targets of a side, by name: in one version where it has one, else each version by itself.
fn meant(side: &Side) -> Result<Vec<Who>, String> {
    let names: BTreeSet<&str> = side.runs.iter().map(|run| run.target.as_str()).collect();
    let mut all = Vec::new();
    for name in names {
        let of_name = side.runs.iter().filter(|run| run.target == name);
        let versions: BTreeSet<Option<&String>> =
            of_name.filter(|run| run.version.is_some() || run.counts()).map(|run| run.version.as_ref()).collect();
        let who = |version: Option<&String>| Who { target: name.to_owned(), version: version.cloned() };
        if versions.is_empty() {
            all.push(who(None));
        }
        all.extend(versions.into_iter().map(who));
    }
    let Some(wanted) = &side.target else { return Ok(all) };
    let chosen: Vec<Who> = all.iter().filter(|who| who.is_meant(wanted)).cloned().collect();
    match chosen.len() {
        0 => Err(format!("the {} has no target {wanted:?}; it has {}", side.role, listed(&all))),
        1 => Ok(chosen),
        _ => Err(format!("the {} has several versions of {wanted:?}: say which of {}", side.role, listed(&chosen))),
    }
}

fn one_of(side: &Side, all: &[Who]) -> Result<Who, String> {
    match all {
        [one] => Ok(one.clone()),
        _ => Err(format!(
            "the {} has several targets, {}: say which with --{}-target",
            side.role,
            listed(all),
            side.role
        )),
    }
}

fn listed(all: &[Who]) -> String {
    let keys: Vec<String> = all.iter().map(Who::key).collect();
    if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{run, sized};

    fn thrice(make: impl Fn(u32) -> Run) -> Vec<Run> {
        (1..=3).map(make).collect()
    }

    fn side(role: &'static str, runs: Vec<Run>) -> Side {
        let runs = runs.into_iter().map(|run| Run { id: format!("{role} {}", run.id).into(), ..run }).collect();
        Side { role, runs, target: None }
    }

    fn versioned(version: &str, target: &str) -> Vec<Run> {
        thrice(|n| Run {
            version: Some(version.to_owned()),
            id: format!("{target}-{version}-{n}").into(),
            ..run(target, n)
        })
    }

    fn told(baseline: Vec<Run>, candidate: Vec<Run>) -> Result<Vec<(String, usize, usize)>, String> {
        let cells = cells(&side("baseline", baseline), &side("candidate", candidate))?;
        Ok(cells.into_iter().map(|cell| (cell.name, cell.baseline.len(), cell.candidate.len())).collect())
    }

    #[test]
    fn the_only_target_of_each_side_is_meant_whatever_it_is_called() {
        let cells = told(versioned("1.0", "servy"), versioned("2.0", "servy-next")).expect("cells");
        assert_eq!(cells, [("hash · 10 VUs · 2 vCPU / 4 GiB".to_owned(), 3, 3)]);
        let same = told(versioned("dev", "servy"), versioned("dev", "servy")).expect("cells");
        assert_eq!((same[0].1, same[0].2), (3, 3));
    }

    #[test]
    fn each_setting_is_a_cell_also_where_one_side_was_not() {
        let sizes = |vcpus: &[f64]| vcpus.iter().map(|vcpus| sized("servy", 1, *vcpus)).collect::<Vec<_>>();
        let cells = told(sizes(&[1.0, 2.0]), sizes(&[2.0, 4.0])).expect("cells");
        let counts: Vec<_> = cells.iter().map(|(_, base, new)| (*base, *new)).collect();
        assert_eq!(counts, [(1, 0), (1, 1), (0, 1)]);
    }

    #[test]
    fn several_targets_are_paired_by_name_if_both_sides_have_the_same() {
        let both = |version| [versioned(version, "a"), versioned(version, "b")].concat();
        let cells = told(both("1.0"), both("2.0")).expect("cells");
        let names: Vec<_> = cells.iter().map(|(name, ..)| name.split(':').next().unwrap_or_default()).collect();
        assert_eq!(names, ["a", "b"]);
        let fault = told(versioned("1.0", "a"), both("2.0")).expect_err("which?");
        assert_eq!(fault, "the candidate has several targets, a@2.0, b@2.0: say which with --candidate-target");
    }

    #[test]
    fn nobody_is_held_against_itself() {
        let runs = [versioned("1.0", "a"), versioned("1.0", "b")].concat();
        let side = |role, target: Option<&str>| Side { role, runs: runs.clone(), target: target.map(str::to_owned) };
        let fault = cells(&side("baseline", None), &side("candidate", None)).expect_err("the same runs");
        assert!(fault.starts_with("a@1.0 would be held against itself"), "{fault}");
        let cells = cells(&side("baseline", Some("a")), &side("candidate", Some("b"))).expect("cells");
        assert_eq!((cells[0].baseline.len(), cells[0].candidate.len()), (3, 3));
    }

    #[test]
    fn who_is_named_is_taken_and_who_is_not_there_is_told() {
        let runs = [versioned("1.0", "servy"), versioned("2.0", "servy")].concat();
        let choose = |base: &str, new: &str| {
            let one = Side { target: Some(base.to_owned()), ..side("baseline", runs.clone()) };
            let other = Side { target: Some(new.to_owned()), ..side("candidate", runs.clone()) };
            cells(&one, &other).map(|cells| cells[0].candidate[0].version.clone())
        };
        assert_eq!(choose("servy@1.0", "servy@2.0"), Ok(Some("2.0".to_owned())));
        let fault = choose("servy", "servy@2.0").expect_err("which version?");
        assert_eq!(fault, "the baseline has several versions of \"servy\": say which of servy@1.0, servy@2.0");
        let fault = choose("servy@1.0", "nobody").expect_err("who?");
        assert_eq!(fault, "the candidate has no target \"nobody\"; it has servy@1.0, servy@2.0");
    }
}
