//! A saved preset. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    experiments::{
        describe::{describe_load, describe_warm_up},
        plan::Plan,
    },
    runs::model::in_cluster,
    web::format::plural,
};

/// Named settings for new runs, shared by all users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// The settings. Targets, sizes and scenario that are empty are chosen when the preset is used.
    pub plan: Plan,
    /// Who created it.
    pub created_by: String,
    /// When it was last saved, unix ms.
    pub saved_at_ms: i64,
}

/// All saved presets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PresetList {
    /// Sorted by name.
    pub presets: Vec<Preset>,
}

/// Returns the settings of a plan by name, for pages and commands.
pub fn settings(plan: &Plan) -> Vec<(&'static str, String)> {
    let Plan { name, targets, against, sizes, scenario, parameters, warm_up_s: _, warm_up_auto: _, .. } = plan;
    let Plan {
        loads: _,
        knee,
        repetitions,
        profiled_repetitions,
        stopping_rule: until,
        retries,
        seed: _,
        agent,
        agent_label,
        spread,
        generators,
        cluster_generators,
        ..
    } = plan;
    let listed = |names: &[String]| if names.is_empty() { "as in the form".to_owned() } else { names.join(", ") };
    let scenario = if scenario.is_empty() { "as in the form".to_owned() } else { scenario.clone() };
    let parameters = parameters.iter().flat_map(|(name, value)| [", ", name, "=", value]).collect::<String>();
    let repetitions = match (knee, until) {
        (Some(knee), _) => {
            format!("at least {} near the knee", knee.rules(plan).confirming().saturating_mul(2))
        }
        (None, Some(until)) => format!("{repetitions}, {}", until.words()),
        (None, None) => repetitions.to_string(),
    };
    let agent = match (agent, agent_label) {
        (Some(agent), _) => agent.clone(),
        (None, Some(label)) => format!("any with label {label}"),
        (None, None) => "any".to_owned(),
    };
    let mut all = vec![
        ("Targets", listed(targets)),
        ("Machine sizes", listed(sizes)),
        ("Scenario", scenario + &parameters),
        ("Load", describe_load(plan)),
        ("Warm-up", describe_warm_up(plan)),
        ("Repetitions", repetitions),
        ("Retries", retries.to_string()),
        ("Agent", if *spread { format!("{agent}, spread over several") } else { agent }),
    ];
    all.extend((*profiled_repetitions > 0).then(|| ("Profiled repetitions", profiled_repetitions.to_string())));
    all.extend((!generators.is_empty()).then(|| ("Load from", generators.join(", "))));
    all.extend((*cluster_generators > 0).then(|| ("Load from", in_cluster(*cluster_generators))));
    all.extend(against.clone().map(|name| ("Baseline", name)));
    all.extend(name.clone().map(|name| ("Name", name)));
    all
}

/// Describes sizes, scenario, load and repetitions in one line.
pub fn summary(plan: &Plan) -> String {
    let sizes = if plan.sizes.is_empty() { "any size".to_owned() } else { plan.sizes.join(", ") };
    let scenario = if plan.scenario.is_empty() { "any scenario" } else { &plan.scenario };
    let repetitions = usize::try_from(plan.repetitions).unwrap_or(usize::MAX);
    let mut parts = vec![sizes, scenario.to_owned(), describe_load(plan)];
    parts.extend(plan.knee.is_none().then(|| plural(repetitions, "repetition")));
    parts.extend(plan.stopping_rule.map(|until| until.words()));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::describe::tests::plan;

    #[test]
    fn settings_that_are_chosen_later_are_named() {
        let later =
            Plan { targets: Vec::new(), scenario: String::new(), agent_label: Some("arm".to_owned()), ..plan() };
        let all = settings(&later);
        let value = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!((value("Targets"), value("Scenario")), (Some("as in the form"), Some("as in the form")));
        assert_eq!((value("Machine sizes"), value("Agent")), (Some("2/4GiB"), Some("any with label arm")));
        assert_eq!((value("Baseline"), value("Load from")), (None, None));
        let line = summary(&later).replace('\u{a0}', " ");
        assert_eq!(line, "2/4GiB · any scenario · 10 VUs, 10 s measured · 3 repetitions");
    }
}
