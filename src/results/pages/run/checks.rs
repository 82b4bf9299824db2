//! Checks by group and thresholds of a summary. Pure.

use brewbench_wire::reports::summary::{Group, Summary};

use crate::web::format::{self, Figure};

/// Maximum number of checks shown; the raw summary has all.
const MAX_CHECKS: usize = 500;

/// The checks of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckGroup {
    /// The group names from the root; empty for checks outside any group.
    pub path: String,
    /// The checks, in the order of the script.
    pub checks: Vec<Check>,
}

/// One check of the script.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The name: any text.
    pub name: String,
    /// How often it passed.
    pub passes: u64,
    /// How often it failed.
    pub fails: u64,
}

impl Check {
    /// How often it passed.
    pub fn passed(&self) -> Figure {
        format::count(Some(self.passes))
    }

    /// How often it failed.
    pub fn failed(&self) -> Figure {
        format::count(Some(self.fails))
    }

    /// The pass rate.
    pub fn share(&self) -> Figure {
        let total = self.passes + self.fails;
        format::percent((total > 0).then(|| self.passes as f64 / total as f64))
    }
}

/// A threshold of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The metric.
    pub metric: String,
    /// The expression, e.g. `p(95)<500`.
    pub expression: String,
    /// Whether it passed; None if its metric has no samples.
    pub passed: Option<bool>,
}

/// Returns the groups with checks, in the order of the script.
pub fn checks(summary: &Summary) -> Vec<CheckGroup> {
    let mut all = Vec::new();
    let mut left = MAX_CHECKS;
    collect(&summary.root, &mut Vec::new(), &mut left, &mut all);
    all
}

fn collect<'a>(group: &'a Group, path: &mut Vec<&'a str>, left: &mut usize, all: &mut Vec<CheckGroup>) {
    let checks: Vec<Check> = group
        .checks
        .iter()
        .take(*left)
        .map(|check| Check { name: check.name.clone(), passes: check.passes, fails: check.fails })
        .collect();
    *left -= checks.len();
    if !checks.is_empty() {
        all.push(CheckGroup { path: path.join(" › "), checks });
    }
    for inner in &group.groups {
        path.push(&inner.name);
        collect(inner, path, left, all);
        path.pop();
    }
}

/// Returns all thresholds: crossed ones first, then those without data.
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
    all.sort_by_key(|threshold| threshold.passed.map_or(1, |passed| if passed { 2 } else { 0 }));
    all
}

#[cfg(test)]
mod tests {
    use brewbench_wire::reports::read::parse;

    use super::*;

    fn real() -> Summary {
        let path = format!("{}/tests/fixtures/k6/handle-summary-odd-v1.8.1.json", env!("CARGO_MANIFEST_DIR"));
        parse(&std::fs::read(path).expect("a fixture")).expect("k6's own")
    }

    #[test]
    fn all_checks_are_listed_by_group() {
        let summary = real();
        let groups = checks(&summary);
        let sum = |count: fn(&Check) -> u64| groups.iter().flat_map(|group| &group.checks).map(count).sum::<u64>();
        let figures = summary.figures();
        assert_eq!(Some(sum(|check| check.passes)), figures.checks_passed);
        assert_eq!(Some(sum(|check| check.fails)), figures.checks_failed);
        assert!(groups.iter().any(|group| !group.path.is_empty()), "{groups:?}");
    }

    #[test]
    fn crossed_thresholds_come_first() {
        let summary = real();
        let all = thresholds(&summary);
        let with_data = all.iter().filter(|threshold| threshold.passed.is_some());
        assert_eq!(u32::try_from(with_data.count()).ok(), summary.figures().thresholds);
        let states: Vec<Option<bool>> = all.iter().map(|threshold| threshold.passed).collect();
        let last_crossed = states.iter().rposition(|passed| *passed == Some(false));
        assert!(last_crossed < states.iter().position(|passed| *passed != Some(false)), "{states:?}");
    }
}
