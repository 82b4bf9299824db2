//! Presets of the form: built-in ones for a common purpose, and saved ones. Pure.

use super::{
    draft::{Draft, LoadBy},
    form_options::Catalog,
};
use crate::{
    catalog::model::find_size,
    experiments::{plan::Plan, presets::model::Preset},
};

/// A preset in the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetChoice {
    /// The form field that chooses it.
    pub field: &'static str,
    /// The field's value.
    pub value: String,
    /// The button.
    pub label: String,
    /// What it sets.
    pub detail: String,
    /// Whether the form has its settings.
    pub is_active: bool,
}

/// Returns the presets to choose from. `current` is the plan of the form, and `plan_of` makes plans of other drafts.
pub fn choices(
    draft: &Draft,
    saved: &[Preset],
    catalog: &Catalog,
    plan_of: impl Fn(&Draft) -> Option<Plan>,
) -> Vec<PresetChoice> {
    let current = plan_of(draft);
    let is_active = |filled: &Draft| current.is_some() && plan_of(filled) == current;
    let built_in = Builtin::ALL.into_iter().map(|preset| {
        let mut filled = draft.clone();
        preset.apply(&mut filled);
        PresetChoice {
            field: "preset",
            value: preset.key().to_owned(),
            label: preset.label().to_owned(),
            detail: preset.detail().to_owned(),
            is_active: is_active(&filled),
        }
    });
    let own = saved.iter().map(|Preset { name, plan, created_by, .. }| PresetChoice {
        field: "saved",
        value: name.clone(),
        label: name.clone(),
        detail: format!("saved by {created_by}"),
        is_active: is_active(&fill(draft, plan, catalog).0),
    });
    built_in.chain(own).collect()
}

/// Fills a draft from a saved preset. Also returns what the preset names but no longer exists.
///
/// Targets, sizes and scenario stay as they are if the preset has none of those that exist.
pub fn fill(draft: &Draft, plan: &Plan, catalog: &Catalog) -> (Draft, Vec<String>) {
    let mut missing = Vec::new();
    let mut known = |kind: &str, names: &[String], exists: &dyn Fn(&String) -> bool| -> Vec<String> {
        missing.extend(names.iter().filter(|name| !exists(name)).map(|name| format!("{kind} {name}")));
        names.iter().filter(|name| exists(name)).cloned().collect()
    };
    let agents: Vec<&str> =
        catalog.agents.iter().filter(|agent| agent.revoked_at_ms.is_none()).map(|agent| agent.name.as_str()).collect();
    let labels = crate::fleet::model::labels(&catalog.agents);
    let filled = Draft::from_plan(plan);
    let one = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    let targets = known("target", &filled.targets, &|name| catalog.targets.iter().any(|target| target.name == *name));
    let sizes = known("machine size", &filled.sizes, &|name| find_size(&catalog.sizes, name).is_some());
    let scenario = known("scenario", &one(&filled.scenario), &|name| {
        catalog.scenarios.iter().any(|scenario| scenario.name == *name)
    });
    let against = known("baseline", &one(&filled.against), &|name| catalog.baselines.contains(name));
    let agent = known("agent", &one(&filled.agent), &|name| agents.contains(&name.as_str()));
    let agent_label = known("agent label", &one(&filled.agent_label), &|label| labels.contains_key(label));
    let load_from = known("load generator", &filled.load_from, &|name| agents.contains(&name.as_str()));
    let or = |found: Vec<String>, current: &[String]| if found.is_empty() { current.to_vec() } else { found };
    let first = |found: Vec<String>| found.into_iter().next().unwrap_or_default();
    let has_scenario = !scenario.is_empty();
    let draft = Draft {
        name: if filled.name.is_empty() { draft.name.clone() } else { filled.name.clone() },
        targets: or(targets, &draft.targets),
        sizes: or(sizes, &draft.sizes),
        scenario: if has_scenario { first(scenario) } else { draft.scenario.clone() },
        parameters: if has_scenario { filled.parameters.clone() } else { draft.parameters.clone() },
        against: first(against),
        agent: first(agent),
        agent_label: first(agent_label),
        load_from,
        ..filled
    };
    (draft, missing)
}

/// A built-in preset: its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// A first impression.
    Quick,
    /// Until the interval is narrow.
    Decide,
    /// The highest rate that meets an objective.
    Limit,
}

impl Builtin {
    /// In the order of the form.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Decide, Self::Limit];

    /// Value of the form field `preset`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Decide => "decide",
            Self::Limit => "limit",
        }
    }

    /// The button.
    pub fn label(self) -> &'static str {
        match self {
            Self::Quick => "Quick look (1 min)",
            Self::Decide => "Decide (until ±2 %)",
            Self::Limit => "Find the limit",
        }
    }

    /// What it sets.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Quick => "10 virtual users for 5 s, four repetitions: two targets at one size take a minute",
            Self::Decide => {
                "10 virtual users for 10 s, until the 95 % interval is narrower than 2 %, at most 20 repetitions"
            }
            Self::Limit => "searches the highest rate that meets an objective",
        }
    }

    /// Fills in the load and the repetitions. Everything else stays.
    pub fn apply(self, draft: &mut Draft) {
        let (load, duration, repeat, until) = match self {
            Self::Quick => (LoadBy::Vus, "5s", "4", ""),
            Self::Decide => (LoadBy::Vus, "10s", "4", "2%"),
            Self::Limit => (LoadBy::Knee, "10s", "4", ""),
        };
        let Draft { vus, at_most, warm_up, .. } = Draft::default();
        (draft.load, draft.vus, draft.at_most) = (load, vus, at_most);
        (draft.duration, draft.warm_up) = (duration.to_owned(), warm_up);
        (draft.repeat, draft.until) = (repeat.to_owned(), until.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use brewbench_agent::wire::target::TargetKind;

    use super::*;
    use crate::{
        catalog::model::{MachineSize, Target},
        experiments::describe::tests::plan,
        web::series_style::Marks,
    };

    fn catalog() -> Catalog {
        let target = |name: &str| Target {
            name: name.to_owned(),
            version: String::new(),
            kind: TargetKind::Process,
            identity: String::new(),
            has_other_code: false,
            description: String::new(),
            first_seen_at_ms: 0,
            last_seen_at_ms: 0,
        };
        Catalog {
            marks: Marks::default(),
            targets: vec![target("gosherve"), target("servy")],
            sizes: vec![MachineSize {
                name: "2 vCPU / 4 GiB".to_owned(),
                vcpus: 2.0,
                memory_bytes: 4 << 30,
                replicas: 1,
            }],
            scenarios: Vec::new(),
            agents: Vec::new(),
            baselines: Vec::new(),
        }
    }

    #[test]
    fn a_saved_preset_fills_the_form_and_names_what_vanished() {
        let draft = Draft::parse(b"target=servy&size=x&scenario=get&vus=3&name=mine");
        let agent = Some("attic".to_owned());
        let (filled, missing) = fill(&draft, &Plan { agent, ..plan() }, &catalog());
        assert_eq!(missing, ["scenario hash", "agent attic"]);
        assert_eq!((filled.targets.len(), filled.sizes.as_slice()), (2, &["2/4GiB".to_owned()][..]));
        assert_eq!((filled.scenario.as_str(), filled.vus.as_str(), filled.agent.as_str()), ("get", "10", ""));
        assert_eq!(filled.name, "mine", "the preset has no name");
    }

    #[test]
    fn what_a_preset_leaves_open_stays_as_it_is() {
        let draft = Draft::parse(b"target=servy&size=x&scenario=get&set.A=1");
        let open = Plan { targets: Vec::new(), sizes: Vec::new(), scenario: String::new(), ..plan() };
        let (filled, missing) = fill(&draft, &open, &catalog());
        assert_eq!((filled.targets, filled.sizes, filled.scenario), (draft.targets, draft.sizes, draft.scenario));
        assert_eq!((filled.parameters, missing.len()), (draft.parameters, 0));
    }

    #[test]
    fn the_preset_whose_settings_the_form_has_is_active() {
        let active = |query: &str| {
            let draft = Draft::parse(query.as_bytes());
            let plan_of = |draft: &Draft| draft.plan(&std::collections::BTreeMap::new()).ok();
            let all = choices(&draft, &[], &catalog(), plan_of);
            all.into_iter().filter(|choice| choice.is_active).map(|choice| choice.value).collect::<Vec<_>>()
        };
        assert_eq!(active("target=a&preset=decide"), ["decide"]);
        assert_eq!(active("target=a&preset=limit&objective=p95%3C1s"), ["limit"], "the objective is for the user");
        assert_eq!(active("preset=quick&vus=x"), ["quick"], "a preset replaces what is invalid");
        assert_eq!(active("repeat=x"), Vec::<String>::new());
    }

    #[test]
    fn a_preset_keeps_what_is_measured_and_replaces_how() {
        let draft = Draft::parse(b"target=a&target=b&size=s&scenario=get&load=rate&rate=9&repeat=7&preset=decide");
        assert_eq!((draft.targets.len(), draft.sizes.len(), draft.scenario.as_str()), (2, 1, "get"));
        assert_eq!((draft.load, draft.repeat.as_str(), draft.until.as_str()), (LoadBy::Vus, "4", "2%"));
    }

    #[test]
    fn every_preset_is_a_valid_plan() {
        for preset in Builtin::ALL {
            let draft = Draft::parse(format!("target=a&target=b&size=s&preset={}", preset.key()).as_bytes());
            assert!(draft.plan(&std::collections::BTreeMap::new()).is_ok(), "{preset:?}");
        }
    }
}
