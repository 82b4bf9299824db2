//! By what a run was judged, in a line. Pure.

use crate::{
    results::{
        store::verdicts::JudgedBy,
        verdict::{limits::Limit, model::RULES},
    },
    runs::model::Run,
    web::{
        address,
        time_ago::{self, Moment},
    },
};

/// What a run was judged by.
#[derive(Debug)]
pub struct Rules {
    /// Which rules.
    pub rules: i64,
    /// Its limits in words: `the usual limits`, `limits of its own (too_short 2 s)`.
    pub limits: String,
    /// The address of its scenario, which has them.
    pub scenario: Option<String>,
    /// When it was judged.
    pub when: Moment,
}

impl Rules {
    /// Of a run and what is kept of its judgement.
    pub fn new(run: &Run, judged: &JudgedBy) -> Self {
        let changed = judged.limits.changed();
        let named = changed.iter().filter_map(|(name, value)| {
            let about = Limit::named(name)?.about();
            Some(format!("{name} {}", about.unit.text(*value)))
        });
        let told: Vec<String> = named.collect();
        let limits = match told.as_slice() {
            [] => "the usual limits".to_owned(),
            told => format!("limits of its scenario ({})", told.join(", ")),
        };
        let scenario = run.scenario.as_deref().map(address::segment);
        Self { rules: judged.rules, limits, scenario, when: time_ago::ago(Some(judged.judged_at_ms)) }
    }

    /// Whether a figure might be judged otherwise today.
    pub fn are_old(&self) -> bool {
        self.rules < i64::from(RULES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::verdict::limits::Limits, runs::testing::finished};

    #[test]
    fn limits_of_its_own_are_named_and_old_rules_are_called_old() {
        let mut limits = Limits::default();
        let by = |rules, limits: &Limits| JudgedBy { rules, limits: limits.clone(), judged_at_ms: 0 };
        let rules = Rules::new(&finished("servy", 1), &by(i64::from(RULES), &limits));
        assert_eq!((rules.limits.as_str(), rules.are_old()), ("the usual limits", false));
        limits.set(Limit::TooShort, 2.0);
        limits.set(Limit::GeneratorBusy, 0.95);
        let rules = Rules::new(&finished("servy", 1), &by(1, &limits));
        assert_eq!(rules.limits, "limits of its scenario (generator_busy 95 %, too_short 2 s)");
        assert!(rules.are_old());
    }
}
