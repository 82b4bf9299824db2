//! Compares the environments of the generators of two runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::difference::{compare, counted, filter_weight};
use crate::results::environment::{
    difference::{FactDifference, Weight},
    facts::GeneratorEnvironment,
};

/// Comparison of two generators, one of each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorDifference {
    /// The agent in the run; null if only the other run has it.
    pub run: Option<String>,
    /// The agent in the other run; null if only this run has it.
    pub with: Option<String>,
    /// Number of equal facts.
    pub alike: u32,
    /// Facts that differ, relevant ones first; empty if either environment is unknown.
    pub differences: Vec<FactDifference>,
}

impl GeneratorDifference {
    /// Returns the differences of a weight.
    pub fn with_weight(&self, weight: Weight) -> Vec<&FactDifference> {
        filter_weight(&self.differences, weight)
    }

    /// Names the two generators.
    pub fn name(&self) -> String {
        match (&self.run, &self.with) {
            (Some(here), Some(there)) if here == there => format!("load generator {here}"),
            (Some(here), Some(there)) => format!("load generator {here}, compared with {there}"),
            (Some(here), None) => format!("load generator {here}, only in this run"),
            (None, Some(there)) => format!("load generator {there}, only in the other run"),
            (None, None) => String::new(),
        }
    }

    /// Summarizes the comparison in a sentence.
    pub fn summarize(&self) -> String {
        match (&self.run, &self.with, self.alike, self.differences.len()) {
            (None, ..) | (_, None, ..) => "No generator to compare with.".to_owned(),
            (.., 0, 0) => "One of the environments is unknown.".to_owned(),
            (.., alike, 0) => format!("No differences; equal facts: {alike}."),
            (.., alike, _) => counted(&self.differences, alike),
        }
    }
}

/// Pairs each generator with the same agent of the other run, or else with the next unpaired one.
pub(super) fn differences(run: &[GeneratorEnvironment], with: &[GeneratorEnvironment]) -> Vec<GeneratorDifference> {
    let contains = |all: &[GeneratorEnvironment], agent: &str| all.iter().any(|one| one.agent == agent);
    let mut others = with.iter().filter(|one| !contains(run, &one.agent));
    let mut pairs: Vec<_> = run
        .iter()
        .map(|here| {
            let there = with.iter().find(|there| there.agent == here.agent);
            (Some(here), there.or_else(|| others.next()))
        })
        .collect();
    pairs.extend(others.map(|there| (None, Some(there))));
    pairs.into_iter().map(|(here, there)| difference(here, there)).collect()
}

fn difference(here: Option<&GeneratorEnvironment>, there: Option<&GeneratorEnvironment>) -> GeneratorDifference {
    let agent = |side: Option<&GeneratorEnvironment>| side.map(|side| side.agent.clone());
    // Generators run no target, so target facts need no special treatment.
    let (alike, differences) = here.zip(there).map_or((0, Vec::new()), |(a, b)| compare(&a.facts, &b.facts, true));
    GeneratorDifference { run: agent(here), with: agent(there), alike, differences }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{conditions::Conditions, environment::facts::tests::fact_map};

    fn one(agent: &str, facts: &[(&str, &str)]) -> GeneratorEnvironment {
        GeneratorEnvironment { agent: agent.to_owned(), facts: fact_map(facts), conditions: Conditions::default() }
    }

    #[test]
    fn generators_are_paired_by_agent_and_the_rest_in_order() {
        let facts = [("cpu.model", "Z80"), ("memory.bytes", "1")];
        let other = [("cpu.model", "6502"), ("memory.bytes", "1")];
        let here = [one("a", &facts), one("b", &facts), one("c", &[])];
        let there = [one("d", &other), one("a", &facts), one("e", &facts), one("f", &facts)];
        let listed: Vec<_> = differences(&here, &there).iter().map(|pair| (pair.name(), pair.summarize())).collect();
        let expected = [
            ("load generator a", "No differences; equal facts: 2."),
            ("load generator b, compared with d", "1 relevant difference; equal facts: 1."),
            ("load generator c, compared with e", "One of the environments is unknown."),
            ("load generator f, only in the other run", "No generator to compare with."),
        ];
        assert_eq!(listed, expected.map(|(name, sentence)| (name.to_owned(), sentence.to_owned())));
        assert_eq!(differences(&here[..1], &[])[0].name(), "load generator a, only in this run");
    }
}
