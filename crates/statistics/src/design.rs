//! Decides which runs of two cells are compared and how, by where and in what order they were measured. Pure.
//!
//! Runs of one experiment are measured in turn, block by block; each block holds one run of every cell. A comparison
//! uses the blocks that both sides completed. Two consecutive blocks of one machine make a stratum: their runs are in
//! random order (see `experiments::order`), so every assignment of the two sides to them was equally likely. From
//! [`MIN_FOR_STRATA`] blocks on the test compares within these strata. With fewer it could not reach a small
//! p-value, so all runs make one stratum.
//!
//! A run that was repeated later does not complete its block: if runs of other strata were measured between it and the
//! block's other one, they had another order.
//!
//! The two runs of a duet are measured at the same time, and share the noise of that time. So each of its blocks is a
//! stratum: only the difference within it counts. The aligned ranks of such strata order all 2ⁿ assignments of signs
//! as Wilcoxon's signed-rank test does, with the scores 2r − 1 instead of r.
//!
//! All others are [`Design::Apart`]: cells of different experiments, and those of one experiment that share no block, as a
//! version that was added on another day. Their difference includes that of the times. Only two machines that take the
//! blocks of an experiment in turn may be compared without a common block.

use std::collections::BTreeMap;

use super::{Stratum, describe::median};

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
    /// When its run started, unix ms; none if unknown.
    pub at_ms: Option<i64>,
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
        /// Where their values were measured.
        places: Places,
    },
    /// Measured at different times.
    Apart,
}

/// An experiment and a block of it.
pub type Block = (String, u32);

/// The blocks of the values of each stratum: those of the baseline and those of the other side.
///
/// Metrics with equal places can be permuted together, as their strata hold values of the same runs.
pub type Places = Vec<[Vec<Block>; 2]>;

/// Experiment and block.
type Place<'a> = (&'a str, u32);

/// Determines how two cells were measured.
pub fn design(base: &[Observation], other: &[Observation]) -> Design {
    let (bases, others) = (by_block(base), by_block(other));
    let common = bases.keys().filter(|place| others.contains_key(*place));
    let complete: Vec<Place> = common.filter(|place| is_together(place, &bases, &others)).copied().collect();
    let strata: Vec<[Vec<Place>; 2]> = match complete.as_slice() {
        [] => match in_alternate_blocks(&bases, &others) {
            Some(strata) => strata,
            None => return Design::Apart,
        },
        complete => strata(complete, &bases, &others).map(|blocks| [blocks.to_vec(), blocks.to_vec()]).collect(),
    };
    let values = |side: &Side, places: &[Place]| places.iter().map(|place| side[place].value).collect();
    let named = |places: &[Place]| places.iter().map(|(name, block)| ((*name).to_owned(), *block)).collect();
    Design::InTurn {
        strata: strata
            .iter()
            .map(|[one, two]| Stratum { base: values(&bases, one), other: values(&others, two) })
            .collect(),
        places: strata.iter().map(|[one, two]| [named(one), named(two)]).collect(),
    }
}

/// Measurement of one side in a block.
struct SideValue<'a> {
    value: f64,
    /// When the first and the last of its runs started; none if that is unknown.
    at_ms: Option<(i64, i64)>,
    agent: Option<&'a str>,
    paired: bool,
}

/// The measurements of one side by place.
type Side<'a> = BTreeMap<Place<'a>, SideValue<'a>>;

fn by_block<'a>(side: &[Observation<'a>]) -> Side<'a> {
    let mut all: BTreeMap<Place, Vec<&Observation>> = BTreeMap::new();
    for one in side.iter().filter(|one| one.interleaved) {
        if let Some(experiment) = one.experiment {
            all.entry((experiment, one.block)).or_default().push(one);
        }
    }
    let measured = |runs: Vec<&Observation<'a>>| {
        let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        let first = runs.first()?;
        let times: Option<Vec<i64>> = runs.iter().map(|run| run.at_ms).collect();
        let at_ms = times.and_then(|times| times.iter().min().copied().zip(times.iter().max().copied()));
        Some(SideValue { value: median(&values)?, at_ms, agent: first.agent, paired: first.paired })
    };
    all.into_iter().filter_map(|(place, runs)| Some((place, measured(runs)?))).collect()
}

/// Returns the pair of blocks that were shuffled together.
fn pair<'a>((experiment, block): &Place<'a>) -> (&'a str, u32) {
    (*experiment, block.saturating_sub(1) / 2)
}

/// Whether no run of another pair of blocks was measured between the two runs of a block on its machine.
fn is_together<'a>(place: &Place<'a>, bases: &Side<'a>, others: &Side<'a>) -> bool {
    let (one, two) = (&bases[place], &others[place]);
    let Some(((one_first, one_last), (two_first, two_last))) = one.at_ms.zip(two.at_ms) else { return true };
    let (first, last) = (one_first.min(two_first), one_last.max(two_last));
    let is_between = |(other, value): (&Place<'a>, &SideValue<'a>)| {
        let is_within = value.at_ms.is_some_and(|(start, _)| first < start && start < last);
        is_within && value.agent == one.agent && pair(other) != pair(place)
    };
    one.agent != two.agent || !bases.iter().chain(others).any(is_between)
}

/// Groups the common blocks into strata.
fn strata<'p, 'a>(
    complete: &'p [Place<'a>],
    bases: &'p Side<'a>,
    others: &'p Side<'a>,
) -> impl Iterator<Item = &'p [Place<'a>]> {
    let is_paired = complete.iter().any(|place| bases[place].paired || others[place].paired);
    let is_one = !is_paired && complete.len() < MIN_FOR_STRATA;
    let agents = |place: &Place<'a>| (bases[place].agent, others[place].agent);
    complete.chunk_by(move |one, next| is_one || !is_paired && pair(one) == pair(next) && agents(one) == agents(next))
}

/// Returns a stratum for each experiment if two machines took its blocks in turn, one for each side.
fn in_alternate_blocks<'a>(bases: &Side<'a>, others: &Side<'a>) -> Option<Vec<[Vec<Place<'a>>; 2]>> {
    let only_agent = |side: &Side<'a>| {
        let agent = side.values().next()?.agent?;
        side.values().all(|one| one.agent == Some(agent)).then_some(agent)
    };
    (only_agent(bases)? != only_agent(others)?).then_some(())?;
    let mut places: Vec<(Place, bool)> = bases.keys().map(|place| (*place, true)).collect();
    places.extend(others.keys().map(|place| (*place, false)));
    places.sort_unstable();
    let of_experiment = |own: &[(Place<'a>, bool)]| {
        let side = |is_base: bool| own.iter().filter(|(_, of)| *of == is_base).map(|(place, _)| *place).collect();
        let is_in_turn = own.len() > 1 && own.windows(2).all(|two| two[0].1 != two[1].1);
        is_in_turn.then(|| [side(true), side(false)])
    };
    places.chunk_by(|(one, _), (next, _)| one.0 == next.0).map(of_experiment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(experiment: &'static str, block: u32, value: f64) -> Observation<'static> {
        Observation {
            experiment: Some(experiment),
            block,
            agent: Some("a"),
            at_ms: None,
            interleaved: true,
            paired: false,
            value,
        }
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
        assert!(
            matches!(found, Design::InTurn { places, .. } if places.iter().map(|[base, _]| base.len()).sum::<usize>() == 7)
        );
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
        assert!(matches!(found, Design::InTurn { places, .. } if places[0][0][0] == ("tuesday".to_owned(), 1)));
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
    fn a_run_that_was_repeated_later_completes_no_block() {
        let timed = |side: Vec<Observation<'static>>, after: i64| -> Vec<Observation<'static>> {
            let start = |block: u32| i64::from(block) * 1_000 + after;
            side.into_iter().map(|one| Observation { at_ms: Some(start(one.block)), ..one }).collect()
        };
        let base = timed(side("e", 1..=8, 0.0), 0);
        let mut other = timed(side("e", 1..=8, 9.0), 500);
        assert_eq!(sizes(&design(&base, &other)), [(2, 2); 4]);
        other[2].at_ms = Some(9_000);
        assert_eq!(sizes(&design(&base, &other)), [(2, 2), (1, 1), (2, 2), (2, 2)]);
        for one in &mut other {
            one.at_ms = one.at_ms.map(|at| at + 100_000);
        }
        assert_eq!(design(&base, &other), Design::Apart, "all runs of one side were measured later");
        for one in &mut other {
            one.agent = Some("b");
        }
        assert_eq!(sizes(&design(&base, &other)), [(2, 2); 4], "clocks of two machines are not compared");
    }

    #[test]
    fn sides_of_one_experiment_without_a_common_block_are_apart() {
        assert_eq!(design(&side("e", 1..=5, 0.0), &side("e", 6..=10, 9.0)), Design::Apart, "a version added later");
        let every_second = |first: usize| -> Vec<Observation<'static>> {
            side("e", 1..=8, 0.0).into_iter().skip(first).step_by(2).collect()
        };
        assert_eq!(design(&every_second(0), &every_second(1)), Design::Apart, "one machine measured both");
    }

    #[test]
    fn two_machines_that_take_blocks_in_turn_are_a_stratum_for_each_experiment() {
        let on = |agent: &'static str, experiment: &'static str, blocks: &[u32]| -> Vec<Observation<'static>> {
            let run = |block: &u32| Observation { agent: Some(agent), ..at(experiment, *block, 1.0) };
            blocks.iter().map(run).collect()
        };
        let odd = [on("a", "e", &[1, 3]), on("a", "f", &[1, 3, 5])].concat();
        let even = [on("b", "e", &[2, 4]), on("b", "f", &[2, 4])].concat();
        assert_eq!(sizes(&design(&odd, &even)), [(2, 2), (3, 2)]);
        let halves = (on("a", "e", &[1, 2, 3]), on("b", "e", &[4, 5, 6]));
        assert_eq!(design(&halves.0, &halves.1), Design::Apart, "one after the other");
        assert_eq!(design(&odd, &on("b", "e", &[2, 4])), Design::Apart, "an experiment without the other machine");
    }
}
