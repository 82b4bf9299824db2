//! Corrects all questions of one page or gate together, as many tests find false differences.
//!
//! A step-down test over all questions (Westfall & Young 1993, "Resampling-Based Multiple Testing"): the most extreme
//! question is compared with the probability that any question reaches its statistic at random. If that is at most
//! [`ALPHA`], its difference is real, and the next question is compared with the remaining ones only. Within a pair of
//! cells the probability comes from exchanging runs, all metrics at once (`joint`); pairs are added up
//! (Bonferroni), which holds whatever they have in common. As statistics are ordered by how far apart the sides are, no
//! smallest p-values are multiplied: if everything differs clearly, four repetitions decide everything.
//!
//! The primary metric counts `PRIMARY` times as much as the others, so they cost it little. Questions that are all
//! equal are answered without a test.

use crate::{
    ALPHA, Stratum,
    design::Places,
    joint::{Assignments, Extremity, Family},
};

/// Weight of the primary metric of a pair if that of all others is 1.
pub const PRIMARY: f64 = 3.0;

/// Steps of a bisection for the level of a question.
const STEPS: usize = 40;

/// What a question is answered from.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// Runs measured in turn, on the scale that is tested.
    InTurn(Vec<Stratum>),
    /// The p-value of the difference between different experiments.
    Apart(f64),
    /// All values are equal. Enough repetitions, whose smallest p-value is this, could have shown a difference.
    Flat(f64),
}

impl Evidence {
    /// Returns the evidence of runs measured in turn. None if a side has none.
    pub fn in_turn(strata: Vec<Stratum>) -> Option<Self> {
        let test = crate::rank_test(&strata)?;
        let is_flat = test.is_flat || strata.iter().all(Stratum::is_flat);
        Some(if is_flat { Self::Flat(test.untied_p) } else { Self::InTurn(strata) })
    }

    fn is_flat(&self) -> bool {
        matches!(self, Self::Flat(_))
    }
}

/// A question: do these two cells differ in this metric?
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Number that identifies the pair of cells.
    pub pair: usize,
    /// Where the values of its strata were measured. Metrics of a pair with the same places are tested together.
    pub places: Places,
    /// Whether it asks for the primary metric.
    pub is_primary: bool,
    /// What answers it.
    pub evidence: Evidence,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The uncorrected p-value.
    pub p: f64,
    /// The p-value corrected for all other questions; significant if at most [`ALPHA`].
    pub corrected: f64,
    /// The level that `p` was compared with.
    pub level: f64,
    /// The level once the other metrics of its pair were decided: a program that differs in one metric usually differs in
    /// those related to it. Minimum detectable effects are those at this level.
    pub level_among_related: f64,
    /// Whether this many repetitions could show a difference at its level.
    pub can_be_answered: bool,
}

impl Question {
    /// Whether the test rejects "no difference".
    pub fn is_rejected(&self) -> bool {
        self.corrected <= ALPHA
    }
}

/// Number of questions on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of pairs of cells.
    pub pairs: usize,
    /// Total number of questions.
    pub questions: usize,
    /// Maximum number of metrics per pair.
    pub metrics: usize,
}

/// Counts the questions that are tested.
pub fn count(tests: &[Test]) -> Count {
    let counted: Vec<&Test> = tests.iter().filter(|test| !test.evidence.is_flat()).collect();
    let mut pairs: Vec<usize> = counted.iter().map(|test| test.pair).collect();
    pairs.sort_unstable();
    let metrics = pairs.chunk_by(|one, other| one == other).map(<[usize]>::len).max().unwrap_or(0);
    pairs.dedup();
    Count { pairs: pairs.len(), questions: counted.len(), metrics }
}

impl Count {
    /// Returns the level of a primary metric for estimates: that of its pair, as related metrics are decided with it.
    pub fn primary_level(self) -> f64 {
        ALPHA / self.pairs.max(1) as f64
    }

    /// Returns the largest smallest p-value with which every question can be decided, whatever the others show.
    ///
    /// A question other than a primary one has to outweigh the primary metrics of all pairs, of which each may reach
    /// less than `PRIMARY` times the smallest p-value at random.
    pub fn deciding_level(self, alpha: f64) -> f64 {
        let others = if self.metrics > 1 { (PRIMARY - 1.0) * self.pairs as f64 } else { 0.0 };
        alpha / (1.0 + others)
    }
}

/// Corrects all tests of a page for a family-wise error rate of `alpha`.
///
/// `alpha` is [`ALPHA`], or less for one of several looks at growing data. The results are in the order of the tests.
pub fn correct(tests: &[Test], alpha: f64) -> Vec<Question> {
    let mut page = Page::new(tests);
    let mut questions = vec![None; tests.len()];
    let (mut corrected, mut is_open, mut last) = (0.0_f64, true, None);
    for entry in page.in_order() {
        corrected = corrected.max(page.reached(entry.observed));
        is_open &= corrected <= alpha;
        let weighted = if is_open { page.level(alpha) } else { *last.get_or_insert_with(|| page.level(alpha)) };
        let level = page.attained(&entry, weighted);
        questions[entry.test] = Some(Question {
            p: entry.p,
            corrected: (corrected * ALPHA / alpha).min(1.0),
            level: if is_open { level.max(entry.p) } else { level },
            level_among_related: page.attained(&entry, page.level_among_related(&entry, weighted, alpha)),
            can_be_answered: is_open || page.could_reject(&entry, alpha),
        });
        if is_open {
            page.remove(&entry);
        }
    }
    let level = last.unwrap_or_else(|| page.level(alpha)).min(alpha);
    let flat = |test: &Test| {
        let can_be_answered = !matches!(test.evidence, Evidence::Flat(least_p) if least_p > alpha);
        Question { p: 1.0, corrected: 1.0, level, level_among_related: level, can_be_answered }
    };
    questions.into_iter().zip(tests).map(|(question, test)| question.unwrap_or_else(|| flat(test))).collect()
}

/// All tested questions of a page by what is exchanged together.
struct Page {
    groups: Vec<Group>,
}

/// Questions with a common distribution.
struct Group {
    kind: Kind,
    /// Numbers of the tests of its members.
    tests: Vec<usize>,
    /// Members that are not rejected.
    remaining: Vec<usize>,
    /// The most extreme statistics of the remaining members in each assignment, sorted.
    sorted: Vec<Extremity>,
}

enum Kind {
    Joint(Family),
    /// A single question with this p-value and weight.
    Single(f64, f64),
}

/// A question that is tested.
#[derive(Clone, Copy)]
struct Entry {
    test: usize,
    group: usize,
    member: usize,
    observed: Extremity,
    p: f64,
    least_p: f64,
    weight: f64,
}

impl Page {
    fn new(tests: &[Test]) -> Self {
        let mut groups = Vec::new();
        let mut joint: Vec<Vec<usize>> = Vec::new();
        for (place, test) in tests.iter().enumerate() {
            match &test.evidence {
                Evidence::Flat(_) => {}
                Evidence::Apart(p) => groups.push(Group::single(place, *p, weight_apart(tests, test))),
                Evidence::InTurn(_) => {
                    let is_its = |other: &&mut Vec<usize>| {
                        let other = &tests[other[0]];
                        other.pair == test.pair && other.places == test.places
                    };
                    match joint.iter_mut().find(is_its) {
                        Some(group) => group.push(place),
                        None => joint.push(vec![place]),
                    }
                }
            }
        }
        let mut known = Assignments::default();
        groups.extend(joint.into_iter().map(|places| Group::joint(tests, places, &mut known)));
        Self { groups }
    }

    /// Returns all questions, the most extreme first.
    fn in_order(&self) -> Vec<Entry> {
        let mut all: Vec<Entry> = self.groups.iter().enumerate().flat_map(|(place, one)| one.entries(place)).collect();
        all.sort_by(|one, other| one.observed.order(&other.observed));
        all
    }

    /// Returns the probability that any remaining question reaches a statistic at random.
    fn reached(&self, statistic: Extremity) -> f64 {
        self.groups.iter().map(|group| group.reached(statistic)).sum()
    }

    /// Returns the largest weighted p-value that the remaining questions reach with a probability of at most `alpha`.
    fn level(&self, alpha: f64) -> f64 {
        let is_within = |p: f64| self.reached(Extremity { p, unexplained: 1.0 }) <= alpha;
        let (mut within, mut beyond) = (0.0, 2.0 * PRIMARY);
        for _ in 0..STEPS {
            let middle = f64::midpoint(within, beyond);
            if is_within(middle) { within = middle } else { beyond = middle }
        }
        within
    }

    /// Returns the level of a question without the others of its group, given the level with them. All other groups take
    /// shares of `alpha` in proportion to the level.
    fn level_among_related(&self, entry: &Entry, weighted: f64, alpha: f64) -> f64 {
        let own = self.groups[entry.group].reached(Extremity { p: weighted, unexplained: 1.0 });
        let sum = (alpha - own).max(0.0) + entry.weight * weighted;
        if sum > 0.0 { (alpha * weighted / sum).max(weighted) } else { weighted }
    }

    /// Returns the largest p-value that a question can have below a weighted one, or that one if it can have none.
    fn attained(&self, entry: &Entry, weighted: f64) -> f64 {
        let attained = match &self.groups[entry.group].kind {
            Kind::Joint(family) => family.members[entry.member].reached(weighted, true),
            Kind::Single(..) => 0.0,
        };
        if attained > 0.0 { attained } else { weighted * entry.weight }
    }

    /// Whether the largest possible difference would be rejected, given the other remaining questions.
    fn could_reject(&self, entry: &Entry, alpha: f64) -> bool {
        let below = |(place, group): (usize, &Group)| {
            group.below(entry.least_p / entry.weight, (place == entry.group).then_some(entry.member))
        };
        self.groups.iter().enumerate().map(below).sum::<f64>() + entry.least_p <= alpha * (1.0 + 1e-9)
    }

    fn remove(&mut self, entry: &Entry) {
        let group = &mut self.groups[entry.group];
        group.remaining.retain(|member| *member != entry.member);
        group.sort();
    }
}

impl Group {
    fn single(test: usize, p: f64, weight: f64) -> Self {
        Self { kind: Kind::Single(p, weight), tests: vec![test], remaining: vec![0], sorted: Vec::new() }
    }

    fn joint(tests: &[Test], places: Vec<usize>, known: &mut Assignments) -> Self {
        let metrics: Vec<(&[Stratum], f64)> = places
            .iter()
            .filter_map(|place| match &tests[*place].evidence {
                Evidence::InTurn(strata) => Some((strata.as_slice(), weight(&tests[*place]))),
                Evidence::Apart(_) | Evidence::Flat(_) => None,
            })
            .collect();
        let family = Family::new(&metrics, known);
        let remaining = (0..family.members.len()).collect();
        let mut group = Self { kind: Kind::Joint(family), tests: places, remaining, sorted: Vec::new() };
        group.sort();
        group
    }

    fn sort(&mut self) {
        if let Kind::Joint(family) = &self.kind {
            self.sorted = family.most_extreme(&self.remaining);
        }
    }

    fn entries(&self, group: usize) -> Vec<Entry> {
        match &self.kind {
            Kind::Single(p, weight) => {
                let observed = Extremity { p: p / weight, unexplained: 0.0 };
                vec![Entry { test: self.tests[0], group, member: 0, observed, p: *p, least_p: 0.0, weight: *weight }]
            }
            Kind::Joint(family) => {
                let entry = |(member, (one, test)): (usize, (&crate::joint::Member, &usize))| {
                    let (observed, p, least_p, weight) = (one.observed, one.p, one.least_p, one.weight);
                    Entry { test: *test, group, member, observed, p, least_p, weight }
                };
                family.members.iter().zip(&self.tests).enumerate().map(entry).collect()
            }
        }
    }

    fn reached(&self, statistic: Extremity) -> f64 {
        match &self.kind {
            Kind::Single(_, weight) if !self.remaining.is_empty() => (statistic.p * weight).min(1.0),
            Kind::Single(..) => 0.0,
            Kind::Joint(family) => family.share(&self.remaining, &self.sorted, statistic),
        }
    }

    /// Returns the probability that a remaining member but this one has a weighted p-value below another.
    fn below(&self, weighted: f64, but: Option<usize>) -> f64 {
        if but.is_none() {
            return self.reached(Extremity::below(weighted));
        }
        let others: Vec<usize> = self.remaining.iter().copied().filter(|member| Some(*member) != but).collect();
        match &self.kind {
            Kind::Single(_, weight) if !others.is_empty() => (weighted * weight).min(1.0),
            Kind::Single(..) => 0.0,
            Kind::Joint(_) if others.is_empty() => 0.0,
            Kind::Joint(family) => family.share_below(&others, weighted),
        }
    }
}

/// Weight of a question that is tested together with the others of its pair.
fn weight(test: &Test) -> f64 {
    if test.is_primary { PRIMARY } else { 1.0 }
}

/// Weight of a question with a p-value of its own: the others of its pair share theirs, as they are added up.
fn weight_apart(tests: &[Test], test: &Test) -> f64 {
    let is_like = |other: &&Test| other.pair == test.pair && !other.is_primary && !other.evidence.is_flat();
    if test.is_primary { PRIMARY } else { 1.0 / tests.iter().filter(is_like).count().max(1) as f64 }
}

#[cfg(test)]
mod tests;
