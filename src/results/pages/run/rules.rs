//! The rules and limits that a run was judged by. Pure.

use crate::{
    results::{
        store::verdicts::JudgedBy,
        verdict::{limits::Limit, model::RULES},
    },
    runs::model::Run,
    web::{
        address,
        time_ago::{self, RelativeTime},
    },
};

/// The rules and limits that a run was judged by.
#[derive(Debug)]
pub struct Rules {
    /// Version of the rules.
    pub rules: i64,
    /// The limits in words: `the default limits`, `limits of its scenario (too_short 2 s)`.
    pub limits: String,
    /// The path segment of the scenario, which sets the limits.
    pub scenario: Option<String>,
    /// When the run was judged.
    pub when: RelativeTime,
}

impl Rules {
    /// Creates it from a run and its stored judgement.
    pub fn new(run: &Run, judged: &JudgedBy) -> Self {
        let changed = judged.limits.changed();
        let named = changed.iter().filter_map(|(name, value)| {
            let about = Limit::find(name)?.definition();
            Some(format!("{name} {}", about.unit.text(*value)))
        });
        let named: Vec<String> = named.collect();
        let limits = match named.as_slice() {
            [] => "the default limits".to_owned(),
            named => format!("limits of its scenario ({})", named.join(", ")),
        };
        let scenario = run.spec.scenario.as_deref().map(address::segment);
        Self { rules: judged.rules, limits, scenario, when: time_ago::ago(Some(judged.judged_at_ms)) }
    }

    /// Whether newer rules exist.
    pub fn are_old(&self) -> bool {
        self.rules < i64::from(RULES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::verdict::limits::Limits, runs::testing::finished};

    #[test]
    fn changed_limits_are_named_and_old_rules_are_detected() {
        let mut limits = Limits::default();
        let by = |rules, limits: &Limits| JudgedBy { rules, limits: limits.clone(), judged_at_ms: 0 };
        let rules = Rules::new(&finished("servy", 1), &by(i64::from(RULES), &limits));
        assert_eq!((rules.limits.as_str(), rules.are_old()), ("the default limits", false));
        limits.set(Limit::TooShort, 2.0);
        limits.set(Limit::GeneratorBusy, 0.95);
        let rules = Rules::new(&finished("servy", 1), &by(1, &limits));
        assert_eq!(rules.limits, "limits of its scenario (generator_busy 95 %, too_short 2 s)");
        assert!(rules.are_old());
    }
}
