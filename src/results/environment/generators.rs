//! In what the environments of those differ who made the load of two runs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::difference::{compare, counted, of_weight};
use crate::results::environment::{
    difference::{FactDifference, Weight},
    facts::GeneratorEnvironment,
};

/// Two who made load, held against each other: one of each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorDifference {
    /// The agent here; null where the other run had one more.
    pub run: Option<String>,
    /// The agent there; null where this run had one more.
    pub with: Option<String>,
    /// How many facts are the same.
    pub alike: u32,
    /// Facts that are not, those that matter first; empty where nothing is known of one of them.
    pub differences: Vec<FactDifference>,
}

impl GeneratorDifference {
    /// Those of a weight.
    pub fn of(&self, weight: Weight) -> Vec<&FactDifference> {
        of_weight(&self.differences, weight)
    }

    /// Who they are, in words.
    pub fn name(&self) -> String {
        match (&self.run, &self.with) {
            (Some(here), Some(there)) if here == there => format!("load from {here}"),
            (Some(here), Some(there)) => format!("load from {here} here, from {there} there"),
            (Some(here), None) => format!("load from {here}, here only"),
            (None, Some(there)) => format!("load from {there}, there only"),
            (None, None) => String::new(),
        }
    }

    /// What there is to say in a sentence.
    pub fn sentence(&self) -> String {
        match (&self.run, &self.with, self.alike, self.differences.len()) {
            (None, ..) | (_, None, ..) => "There is no one to hold it against.".to_owned(),
            (.., 0, 0) => "Nothing is known of one of their environments.".to_owned(),
            (.., alike, 0) => format!("The environments are the same in all {alike} facts."),
            (.., alike, _) => counted(&self.differences, alike),
        }
    }
}

/// Each one of a run with its own counterpart: the same agent where there is one, and of the others the next.
pub(super) fn differences(run: &[GeneratorEnvironment], with: &[GeneratorEnvironment]) -> Vec<GeneratorDifference> {
    let named = |of: &[GeneratorEnvironment], agent: &str| of.iter().any(|one| one.agent == agent);
    let mut others = with.iter().filter(|one| !named(run, &one.agent));
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
    // They run no target: whatever they tell of one is of no other kind than the rest.
    let (alike, differences) = here.zip(there).map_or((0, Vec::new()), |(a, b)| compare(&a.facts, &b.facts, true));
    GeneratorDifference { run: agent(here), with: agent(there), alike, differences }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{conditions::Conditions, environment::facts::tests::told};

    fn one(agent: &str, facts: &[(&str, &str)]) -> GeneratorEnvironment {
        GeneratorEnvironment { agent: agent.to_owned(), facts: told(facts), conditions: Conditions::default() }
    }

    #[test]
    fn each_is_held_against_itself_and_strangers_against_each_other() {
        let facts = [("cpu.model", "Z80"), ("memory.bytes", "1")];
        let other = [("cpu.model", "6502"), ("memory.bytes", "1")];
        let here = [one("a", &facts), one("b", &facts), one("c", &[])];
        let there = [one("d", &other), one("a", &facts), one("e", &facts), one("f", &facts)];
        let told: Vec<_> = differences(&here, &there).iter().map(|pair| (pair.name(), pair.sentence())).collect();
        let expected = [
            ("load from a", "The environments are the same in all 2 facts."),
            ("load from b here, from d there", "1 fact that matters differs; 1 are the same."),
            ("load from c here, from e there", "Nothing is known of one of their environments."),
            ("load from f, there only", "There is no one to hold it against."),
        ];
        assert_eq!(told, expected.map(|(name, sentence)| (name.to_owned(), sentence.to_owned())));
        assert_eq!(differences(&here[..1], &[])[0].name(), "load from a, here only");
    }
}
