//! Decides which runs of two cells are compared and how, by where and in what order they were measured. Pure.
//!
//! Runs of one experiment are measured in turn, block by block; each block holds one run of every cell. A comparison
//! uses the blocks that both sides completed. Two consecutive blocks of one machine make a stratum: their runs are in
//! random order (see `experiments::order`), so every assignment of the two sides to them was equally likely. From
//! [`MIN_FOR_STRATA`] blocks on the test compares within these strata. With fewer it could not reach a small
//! p-value, so all runs make one stratum.
//!
//! The two runs of a duet are measured at the same time, and share the noise of that time. So each of its blocks is a
//! stratum: only the difference within it counts. The aligned ranks of such strata order all 2ⁿ assignments of signs
//! as Wilcoxon's signed-rank test does, with the scores 2r − 1 instead of r.
//!
//! Cells that no experiment measured together are [`Design::Apart`]: their difference includes the variation between
//! the experiments.

use std::collections::{BTreeMap, BTreeSet};

use super::{Block, Stratum, describe::median};

/// From this many blocks on runs are compared within pairs of blocks.
pub const MIN_FOR_STRATA: usize = 6;

/// A value of a metric in one run, and where it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation<'a> {
    /// The experiment, if any.
    pub experiment: Option<&'a str>,
    /// The block, which is the repetition.
    pub block: u32,
    /// The machine.
    pub agent: Option<&'a str>,
    /// Whether the experiment is known to alternate between the cells.
    pub interleaved: bool,
    /// Whether the runs of a block were measured at the same time, as in a duet.
    pub paired: bool,
    /// The value.
    pub value: f64,
}

/// How two cells were measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Design {
    /// Measured in turn.
    InTurn {
        /// Runs of both sides, grouped by exchangeability.
        strata: Vec<Stratum>,
        /// The blocks that were compared: those of both sides, or of the baseline and then of the other side.
        blocks: Vec<Block>,
    },
    /// Measured in different experiments.
    Apart,
}

/// Experiment and block.
type Place<'a> = (&'a str, u32);

/// Determines how two cells were measured.
pub fn design(base: &[Observation], other: &[Observation]) -> Design {
    let (bases, others) = (by_block(base), by_block(other));
    let complete: Vec<Place> = bases.keys().filter(|place| others.contains_key(*place)).copied().collect();
    if !complete.is_empty() {
        let blocks = complete.iter().map(|(experiment, block)| ((*experiment).to_owned(), *block)).collect();
        return Design::InTurn { strata: strata(&complete, &bases, &others), blocks };
    }
    // One machine measures the odd blocks and another the even ones: in turn, but never in one block.
    if is_balanced(base, other) {
        let values = |side: &[Observation]| side.iter().map(|one| one.value).collect();
        let block = |one: &Observation| Some((one.experiment?.to_owned(), one.block));
        let blocks = base.iter().chain(other).filter_map(block).collect();
        return Design::InTurn { strata: vec![Stratum { base: values(base), other: values(other) }], blocks };
    }
    Design::Apart
}

/// Measurement of one side in a block.
struct SideValue<'a> {
    value: f64,
    agent: Option<&'a str>,
    paired: bool,
}

fn by_block<'a>(side: &[Observation<'a>]) -> BTreeMap<Place<'a>, SideValue<'a>> {
    let mut all: BTreeMap<Place, Vec<&Observation>> = BTreeMap::new();
    for one in side.iter().filter(|one| one.interleaved) {
        if let Some(experiment) = one.experiment {
            all.entry((experiment, one.block)).or_default().push(one);
        }
    }
    let measured = |runs: Vec<&Observation<'a>>| {
        let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        let first = runs.first()?;
        Some(SideValue { value: median(&values)?, agent: first.agent, paired: first.paired })
    };
    all.into_iter().filter_map(|(place, runs)| Some((place, measured(runs)?))).collect()
}

fn strata(complete: &[Place], bases: &BTreeMap<Place, SideValue>, others: &BTreeMap<Place, SideValue>) -> Vec<Stratum> {
    let stratum = |places: &[Place]| Stratum {
        base: places.iter().map(|place| bases[place].value).collect(),
        other: places.iter().map(|place| others[place].value).collect(),
    };
    if complete.iter().any(|place| bases[place].paired || others[place].paired) {
        return complete.chunks(1).map(stratum).collect();
    }
    if complete.len() < MIN_FOR_STRATA {
        return vec![stratum(complete)];
    }
    let pair = |(experiment, block): &Place| ((*experiment).to_owned(), block.saturating_sub(1) / 2);
    let agents = |place: &Place| (bases[place].agent, others[place].agent);
    let belong = |one: &Place, next: &Place| pair(one) == pair(next) && agents(one) == agents(next);
    complete.chunk_by(belong).map(stratum).collect()
}

/// Whether both sides have the same share of their runs in each experiment.
fn is_balanced(base: &[Observation], other: &[Observation]) -> bool {
    let shares = |side: &[Observation]| -> Option<BTreeMap<String, usize>> {
        let mut counts = BTreeMap::new();
        for one in side {
            *counts.entry(one.experiment.filter(|_| one.interleaved)?.to_owned()).or_default() += 1;
        }
        Some(counts)
    };
    let (Some(one), Some(two)) = (shares(base), shares(other)) else { return false };
    let all: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
    let of = |counts: &BTreeMap<String, usize>, name: &String| counts.get(name).copied().unwrap_or(0);
    !base.is_empty()
        && !other.is_empty()
        && all.iter().all(|name| of(&one, name) * other.len() == of(&two, name) * base.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(experiment: &'static str, block: u32, value: f64) -> Observation<'static> {
        Observation { experiment: Some(experiment), block, agent: Some("a"), interleaved: true, paired: false, value }
    }

    fn side(experiment: &'static str, blocks: std::ops::RangeInclusive<u32>, level: f64) -> Vec<Observation<'static>> {
        blocks.map(|block| at(experiment, block, level + f64::from(block))).collect()
    }

    fn sizes(design: &Design) -> Vec<(usize, usize)> {
        match design {
            Design::InTurn { strata, .. } => strata.iter().map(|one| (one.base.len(), one.other.len())).collect(),
            Design::Apart => Vec::new(),
        }
    }

    #[test]
    fn few_blocks_make_one_stratum_and_many_make_pairs() {
        assert_eq!(sizes(&design(&side("e", 1..=5, 0.0), &side("e", 1..=5, 9.0))), [(5, 5)]);
        assert_eq!(sizes(&design(&side("e", 1..=7, 0.0), &side("e", 1..=7, 9.0))), [(2, 2), (2, 2), (2, 2), (1, 1)]);
    }

    #[test]
    fn each_block_of_a_duet_is_a_stratum() {
        let duet = |level: f64| -> Vec<Observation<'static>> {
            side("e", 1..=5, level).into_iter().map(|one| Observation { paired: true, ..one }).collect()
        };
        assert_eq!(sizes(&design(&duet(0.0), &duet(9.0))), [(1, 1); 5]);
    }

    #[test]
    fn an_incomplete_block_is_not_used_and_its_neighbour_is_a_stratum() {
        let mut base = side("e", 1..=8, 0.0);
        base.remove(2);
        let found = design(&base, &side("e", 1..=8, 9.0));
        assert_eq!(sizes(&found), [(2, 2), (1, 1), (2, 2), (2, 2)]);
        assert!(matches!(found, Design::InTurn { blocks, .. } if blocks.len() == 7));
    }

    #[test]
    fn blocks_of_two_machines_are_not_one_stratum() {
        let on_two = |level: f64| -> Vec<Observation<'static>> {
            let agent = |block: u32| Some(if block.is_multiple_of(2) { "a" } else { "b" });
            side("e", 1..=6, level).into_iter().map(|one| Observation { agent: agent(one.block), ..one }).collect()
        };
        assert_eq!(sizes(&design(&on_two(0.0), &on_two(9.0))), [(1, 1); 6]);
    }

    #[test]
    fn only_blocks_of_the_same_experiment_count() {
        let base = [side("monday", 1..=5, 0.0), side("tuesday", 1..=4, 0.0)].concat();
        let found = design(&base, &side("tuesday", 1..=4, 9.0));
        assert_eq!(sizes(&found), [(4, 4)]);
        assert!(matches!(found, Design::InTurn { blocks, .. } if blocks[0] == ("tuesday".to_owned(), 1)));
        assert_eq!(design(&side("monday", 1..=9, 0.0), &side("tuesday", 1..=9, 9.0)), Design::Apart);
    }

    #[test]
    fn runs_of_unknown_order_or_experiment_are_apart() {
        let unknown = |side: Vec<Observation<'static>>| -> Vec<Observation<'static>> {
            side.into_iter().map(|one| Observation { interleaved: false, ..one }).collect()
        };
        assert_eq!(design(&unknown(side("e", 1..=5, 0.0)), &side("e", 1..=5, 9.0)), Design::Apart);
        let none = |side: Vec<Observation<'static>>| -> Vec<Observation<'static>> {
            side.into_iter().map(|one| Observation { experiment: None, ..one }).collect()
        };
        assert_eq!(design(&none(side("e", 1..=5, 0.0)), &none(side("e", 1..=5, 9.0))), Design::Apart);
    }

    #[test]
    fn machines_that_alternate_by_block_are_compared_only_in_equal_shares() {
        let odd = |experiment: &'static str| vec![at(experiment, 1, 1.0), at(experiment, 3, 2.0)];
        let even = |experiment: &'static str| vec![at(experiment, 2, 1.0), at(experiment, 4, 2.0)];
        assert_eq!(sizes(&design(&[odd("e"), odd("f")].concat(), &[even("e"), even("f")].concat())), [(4, 4)]);
        let uneven = [odd("e"), odd("f"), vec![at("e", 5, 1.0)]].concat();
        assert_eq!(design(&uneven, &[even("e"), even("f")].concat()), Design::Apart);
    }
}
