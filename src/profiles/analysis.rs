//! Turns decoded profiles into tables, comparisons and graphs. Pure.

use crate::profiles::mean::mean;
use brewbench_wire::profile::ProfileKind;

use super::{
    confounders::confounders,
    graph::{self, Graph},
    load::ProfiledRuns,
    model::{
        Delta, FunctionChange, FunctionRow, Overhead, ProfileComparison, ProfileInfo, ProfileSide, ProfileTable, Scale,
    },
    package::package,
};
use crate::profiles::{
    changes::{Change, Changes, Subject},
    functions::{Function, Functions},
    headline::Headline,
    max_t::Interval,
    tree::Tree,
};

/// Returns the table of a cell's profile with at most `limit` functions.
pub fn table(side: &ProfiledRuns, kind: ProfileKind, overhead: Vec<Overhead>, limit: usize) -> ProfileTable {
    let tree = Tree::union(&side.weighted(kind));
    let functions = Functions::new(&tree);
    let scale = Scale::new(kind, tree.unit);
    let whole = mean(&tree.whole);
    let row = |function: &Function| {
        let (own, total) = (mean(&function.own), mean(&function.total));
        let share = |value: f64| if whole > 0.0 { value / whole } else { 0.0 };
        FunctionRow {
            function: function.name.name.clone(),
            package: package(&function.name).name,
            own: own * scale.factor,
            total: total * scale.factor,
            own_share: share(own),
            total_share: share(total),
        }
    };
    ProfileTable {
        kind,
        target: side.first().spec.target.clone(),
        version: side.first().version.clone(),
        unit: scale.unit.to_owned(),
        total: whole * scale.factor,
        functions: functions.functions.iter().take(limit).map(row).collect(),
        functions_in_total: functions.functions.len(),
        profiles: side.profiles.iter().map(ProfileInfo::from).collect(),
        overhead,
    }
}

/// Returns the flame graph of a cell.
pub fn graph(side: &ProfiledRuns, kind: ProfileKind) -> Graph {
    let tree = graph::drawable(&Tree::union(&side.weighted(kind)));
    let scale = Scale::new(kind, tree.unit);
    graph::graph(&tree, scale)
}

/// Two sides with everything that is derived from both.
pub struct Compared<'a> {
    sides: [&'a ProfiledRuns; 2],
    kind: ProfileKind,
    tree: Tree,
    functions: Functions,
    changes: Changes,
    scale: Scale,
}

impl<'a> Compared<'a> {
    /// Compares a candidate with a baseline.
    pub fn new(baseline: &'a ProfiledRuns, candidate: &'a ProfiledRuns, kind: ProfileKind) -> Self {
        let profiles = [baseline.weighted(kind), candidate.weighted(kind)].concat();
        let tree = graph::drawable(&Tree::union(&profiles));
        let functions = Functions::new(&tree);
        let changes = Changes::new(&tree, &functions, baseline.runs.len());
        let scale = Scale::new(kind, tree.unit);
        Self { sides: [baseline, candidate], kind, tree, functions, changes, scale }
    }

    /// Returns the flame graph of both trees.
    pub fn graph(&self) -> Graph {
        let [baseline, _] = self.sides;
        graph::compared(&self.tree, &self.changes, baseline.runs.len(), self.labels(), self.scale)
    }

    /// Returns the names that distinguish both sides: the targets, with their versions if the targets are the same.
    fn labels(&self) -> [String; 2] {
        let [one, other] = self.sides.map(ProfiledRuns::first);
        if one.spec.target != other.spec.target {
            return [one.spec.target.clone(), other.spec.target.clone()];
        }
        if one.version != other.version {
            let label = |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown version".to_owned());
            return [one, other].map(|run| format!("{} {}", run.spec.target, label(&run.version)));
        }
        [format!("{} (baseline)", one.spec.target), format!("{} (candidate)", other.spec.target)]
    }

    /// Returns the comparison with at most `limit` functions.
    pub fn comparison(&self, overhead: [Vec<Overhead>; 2], limit: usize) -> ProfileComparison {
        let Self { kind, changes, scale, .. } = self;
        let confounders = confounders(self.sides[0].measured_by(), self.sides[1].measured_by());
        let headline = Headline::new(&self.tree, changes);
        let [first, second] = self.labels();
        let [of_first, of_second] = overhead;
        ProfileComparison {
            kind: *kind,
            unit: scale.unit.to_owned(),
            headline: if *kind == ProfileKind::Cpu && confounders.is_empty() {
                headline.sentences()
            } else {
                Vec::new()
            },
            confounders,
            baseline: self.side(0, first, of_first),
            candidate: self.side(1, second, of_second),
            difference: changes.whole.map(|change| self.delta(Some(&change), changes.whole_interval(), 0.0, 0.0)),
            functions: self.rows(limit),
            functions_in_total: self.functions.functions.len(),
            questions: changes.changes.len(),
            fewest: changes.fewest,
        }
    }

    fn side(&self, place: usize, label: String, overhead: Vec<Overhead>) -> ProfileSide {
        let side = self.sides[place];
        let (baseline, candidate) = self.tree.whole.split_at(self.sides[0].runs.len());
        ProfileSide {
            target: side.first().spec.target.clone(),
            version: side.first().version.clone(),
            label,
            profiles: side.profiles.iter().map(ProfileInfo::from).collect(),
            total: mean(if place == 0 { baseline } else { candidate }) * self.scale.factor,
            overhead,
        }
    }

    /// Returns the functions: significant differences of own time first, then the others by size.
    fn rows(&self, limit: usize) -> Vec<FunctionChange> {
        let find = |subject: Subject| self.changes.changes.iter().position(|change| change.subject == subject);
        let mut all: Vec<_> = self
            .functions
            .functions
            .iter()
            .map(|function| {
                let (own, total) = (find(Subject::Own(function.symbol)), find(Subject::Total(function.symbol)));
                let is_significant = own.is_some_and(|own| self.changes.changes[own].is_significant());
                let [baseline, candidate] = self.means(&function.own);
                (is_significant, (candidate - baseline).abs(), function, own, total)
            })
            .collect();
        all.sort_by(|one, other| other.0.cmp(&one.0).then(other.1.total_cmp(&one.1)));
        all.truncate(limit);
        let asked: Vec<usize> = all.iter().flat_map(|row| [row.3, row.4]).flatten().collect();
        let intervals: Vec<_> = asked.iter().copied().zip(self.changes.intervals(&asked)).collect();
        let delta = |index: Option<usize>, values: &[f64]| {
            let interval = index.and_then(|index| intervals.iter().find(|(known, _)| *known == index)?.1);
            let [baseline, candidate] = self.means(values);
            self.delta(index.map(|index| &self.changes.changes[index]), interval, baseline, candidate)
        };
        let row = |(_, _, function, own, total): (bool, f64, &Function, Option<usize>, Option<usize>)| FunctionChange {
            function: function.name.name.clone(),
            package: package(&function.name).name,
            presence: presence(self.means(&function.total)).to_owned(),
            own: delta(own, &function.own),
            total: delta(total, &function.total),
        };
        all.into_iter().map(row).collect()
    }

    /// Returns the means of both sides.
    fn means(&self, values: &[f64]) -> [f64; 2] {
        let (baseline, candidate) = values.split_at(self.sides[0].runs.len());
        [mean(baseline), mean(candidate)]
    }

    /// Returns a difference in the shown unit; the means count if it was too small to be tested.
    fn delta(&self, change: Option<&Change>, interval: Option<Interval>, baseline: f64, candidate: f64) -> Delta {
        let (baseline, candidate) = change.map_or((baseline, candidate), |one| (one.baseline, one.candidate));
        let factor = self.scale.factor;
        Delta {
            baseline: baseline * factor,
            candidate: candidate * factor,
            difference: (candidate - baseline) * factor,
            low: interval.map(|interval| interval.low * factor),
            high: interval.map(|interval| interval.high * factor),
            p: change.map(|change| change.p),
            is_significant: change.is_some_and(Change::is_significant),
        }
    }
}

fn presence([baseline, candidate]: [f64; 2]) -> &'static str {
    match (baseline > 0.0, candidate > 0.0) {
        (false, true) => "new",
        (true, false) => "vanished",
        _ => "both",
    }
}
