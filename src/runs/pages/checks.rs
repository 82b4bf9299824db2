//! Checks by group and thresholds of a summary. Pure.

use brewbench_agent::reports::summary::{Group, Summary};

use crate::web::format::{self, Figure};

/// More checks than this are left to the raw summary.
const MOST: usize = 500;

/// The checks of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckGroup {
    /// The names from the root down; empty for the checks outside of any.
    pub path: String,
    /// In the order of the script.
    pub checks: Vec<Check>,
}

/// Something that the script looked at again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Any text.
    pub name: String,
    /// How often it held.
    pub passes: u64,
    /// How often it did not.
    pub fails: u64,
}

impl Check {
    /// How often it held.
    pub fn held(&self) -> Figure {
        format::count(Some(self.passes))
    }

    /// How often it did not.
    pub fn did_not(&self) -> Figure {
        format::count(Some(self.fails))
    }

    /// How often it held as a share of all.
    pub fn share(&self) -> Figure {
        let of = self.passes + self.fails;
        format::percent((of > 0).then(|| self.passes as f64 / of as f64))
    }
}

/// A condition that the script set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Of which metric.
    pub metric: String,
    /// E.g. `p(95)<500`.
    pub expression: String,
    /// Whether it held.
    pub passed: bool,
}

/// The groups that have checks, in the order of the script.
pub fn checks(summary: &Summary) -> Vec<CheckGroup> {
    let mut all = Vec::new();
    let mut room = MOST;
    gather(&summary.root, &mut Vec::new(), &mut room, &mut all);
    all
}

fn gather<'a>(group: &'a Group, path: &mut Vec<&'a str>, room: &mut usize, all: &mut Vec<CheckGroup>) {
    let checks: Vec<Check> = group
        .checks
        .iter()
        .take(*room)
        .map(|check| Check { name: check.name.clone(), passes: check.passes, fails: check.fails })
        .collect();
    *room -= checks.len();
    if !checks.is_empty() {
        all.push(CheckGroup { path: path.join(" › "), checks });
    }
    for inner in &group.groups {
        path.push(&inner.name);
        gather(inner, path, room, all);
        path.pop();
    }
}

/// All thresholds; those that did not hold come first.
pub fn thresholds(summary: &Summary) -> Vec<Threshold> {
    let mut all: Vec<Threshold> = summary
        .metrics
        .iter()
        .flat_map(|(name, metric)| {
            metric.thresholds.iter().map(|threshold| Threshold {
                metric: name.clone(),
                expression: threshold.expression.clone(),
                passed: threshold.passed,
            })
        })
        .collect();
    all.sort_by_key(|threshold| threshold.passed);
    all
}

#[cfg(test)]
mod tests {
    use brewbench_agent::reports::read::parse;

    use super::*;

    fn real() -> Summary {
        let path = format!("{}/tests/fixtures/k6/handle-summary-odd-v1.8.1.json", env!("CARGO_MANIFEST_DIR"));
        parse(&std::fs::read(path).expect("a fixture")).expect("k6's own")
    }

    #[test]
    fn all_checks_are_there_under_the_names_of_their_groups() {
        let summary = real();
        let groups = checks(&summary);
        let sum = |count: fn(&Check) -> u64| groups.iter().flat_map(|group| &group.checks).map(count).sum::<u64>();
        let figures = summary.figures();
        assert_eq!(Some(sum(|check| check.passes)), figures.checks_passed);
        assert_eq!(Some(sum(|check| check.fails)), figures.checks_failed);
        assert!(groups.iter().any(|group| !group.path.is_empty()), "{groups:?}");
    }

    #[test]
    fn thresholds_that_did_not_hold_come_first() {
        let summary = real();
        let all = thresholds(&summary);
        assert_eq!(u32::try_from(all.len()).ok(), summary.figures().thresholds);
        assert!(all.is_sorted_by_key(|threshold| threshold.passed));
    }
}
