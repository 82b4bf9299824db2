//! Links from an experiment to its profiles: each cell, and each pair of targets. Pure.

use super::{confounders::setting, model::CompareQuery};
use crate::{
    app::ids::{RunId, joined},
    runs::model::Run,
    web::series_style::{Mark, Marks},
};

/// The profiled cells of one setting. Template: `profiles/_links.html`.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingLinks {
    /// Size, scenario and load, as far as the experiment has several.
    pub title: String,
    /// Its cells.
    pub cells: Vec<CellLink>,
}

/// A profiled cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellLink {
    /// The target.
    pub target: String,
    /// Its version.
    pub version: Option<String>,
    /// Its colour.
    pub mark: Mark,
    runs: Vec<RunId>,
}

impl CellLink {
    /// Number of profiled runs.
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// Its target, with the version.
    pub fn name(&self) -> String {
        self.version.as_ref().map_or_else(|| self.target.clone(), |version| format!("{} {version}", self.target))
    }

    /// The page of its profile.
    pub fn href(&self) -> String {
        format!("/profiles?runs={}", joined(&self.runs))
    }
}

impl SettingLinks {
    /// Pairs of cells: the first one with each other one, and what compares them.
    pub fn pairs(&self) -> Vec<(&CellLink, &CellLink, CompareQuery)> {
        let Some((baseline, others)) = self.cells.split_first() else { return Vec::new() };
        let query = |other: &CellLink| CompareQuery {
            baseline: joined(&baseline.runs),
            candidate: joined(&other.runs),
            ..CompareQuery::default()
        };
        others.iter().map(|other| (baseline, other, query(other))).collect()
    }
}

/// Returns the profiled cells of an experiment's runs, by setting, targets in the order of their first run.
pub fn links(runs: &[Run], marks: &Marks) -> Vec<SettingLinks> {
    let profiled: Vec<&Run> = runs.iter().filter(|run| run.spec.profiled && run.has_result()).collect();
    let mut settings: Vec<_> = Vec::new();
    for run in &profiled {
        if !settings.contains(&setting(run)) {
            settings.push(setting(run));
        }
    }
    settings.sort();
    let varies = |place: usize| settings.iter().any(|other| other[place].1 != settings[0][place].1);
    let of_setting = |one: &[(&'static str, String); 7]| {
        let parts = one.iter().enumerate().filter(|(place, _)| varies(*place)).map(|(_, (_, text))| text.as_str());
        let mut cells: Vec<CellLink> = Vec::new();
        for run in profiled.iter().filter(|run| setting(run) == *one) {
            match cells.iter_mut().find(|cell| cell.target == run.spec.target && cell.version == run.version) {
                Some(cell) => cell.runs.push(run.id.clone()),
                None => cells.push(CellLink {
                    target: run.spec.target.clone(),
                    version: run.version.clone(),
                    mark: marks.of(&run.spec.target),
                    runs: vec![run.id.clone()],
                }),
            }
        }
        cells.sort_by(|one, other| one.target.cmp(&other.target).then(one.version.cmp(&other.version)));
        SettingLinks { title: parts.collect::<Vec<_>>().join(" · "), cells }
    };
    settings.iter().map(of_setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{model::RunSpec, testing::finished};

    #[test]
    fn profiled_runs_are_grouped_by_setting_and_target() {
        let profiled = |target: &str, repetition| Run {
            spec: RunSpec { profiled: true, ..finished(target, repetition).spec },
            ..finished(target, repetition)
        };
        let mut large = profiled("servy", 9);
        large.spec.size.as_mut().expect("a size").name = "16 vCPU".to_owned();
        let runs = [finished("servy", 1), profiled("servy", 2), profiled("gosherve", 3), profiled("servy", 4), large];
        let links = links(&runs, &Marks::default());
        assert_eq!(links.len(), 2);
        assert_eq!(links[0].title, "16 vCPU");
        assert!(links[0].pairs().is_empty(), "nothing to compare with");
        let [go, servy] = links[1].cells.as_slice() else { panic!("{links:?}") };
        assert_eq!((go.count(), servy.count()), (1, 2));
        assert_eq!(servy.href(), "/profiles?runs=servy-2,servy-4");
        assert_eq!(links[1].pairs()[0].2.href(), "/profiles/compare?baseline=gosherve-3&candidate=servy-2,servy-4");
    }
}
