//! Presets of the form: settings for a common purpose. Pure.

use super::draft::{Draft, LoadBy};
use crate::experiments::{plan::Plan, plan_fields::WARM_UP};

/// A preset in the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetChoice {
    /// The preset.
    pub preset: Preset,
    /// Whether the form has its settings.
    pub is_active: bool,
}

/// Returns the presets to choose from. `plan_of` makes plans of drafts.
pub fn choices(draft: &Draft, plan_of: impl Fn(&Draft) -> Option<Plan>) -> Vec<PresetChoice> {
    let current = plan_of(draft);
    let choice = |preset: Preset| {
        let mut filled = draft.clone();
        preset.apply(&mut filled);
        PresetChoice { preset, is_active: current.is_some() && plan_of(&filled) == current }
    };
    Preset::ALL.into_iter().map(choice).collect()
}

/// A preset, named by its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A first impression.
    Quick,
    /// Until the interval is narrow.
    Decide,
    /// The highest rate that meets an objective.
    Limit,
}

impl Preset {
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
        let Draft { vus, at_most, .. } = Draft::default();
        (draft.load, draft.vus, draft.at_most) = (load, vus, at_most);
        duration.clone_into(&mut draft.duration);
        draft.fields.remove(WARM_UP);
        (draft.repeat, draft.until) = (repeat.to_owned(), until.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preset_whose_settings_the_form_has_is_active() {
        let active = |query: &str| {
            let draft = Draft::parse(query.as_bytes());
            let plan_of = |draft: &Draft| draft.plan(&std::collections::BTreeMap::new()).ok();
            let all = choices(&draft, plan_of);
            all.into_iter().filter(|choice| choice.is_active).map(|choice| choice.preset.key()).collect::<Vec<_>>()
        };
        assert_eq!(active("target=a&preset=decide"), ["decide"]);
        assert_eq!(active("target=a&preset=limit&objective=p95%3C1s"), ["limit"], "the objective is for the user");
        assert_eq!(active("preset=quick&vus=x"), ["quick"], "a preset replaces what is invalid");
        assert_eq!(active("repeat=x"), [""; 0]);
    }

    #[test]
    fn a_preset_keeps_what_is_measured_and_replaces_how() {
        let draft = Draft::parse(b"target=a&target=b&size=s&scenario=get&load=rate&rate=9&repeat=7&preset=decide");
        assert_eq!((draft.targets.len(), draft.sizes.len(), draft.scenario.as_str()), (2, 1, "get"));
        assert_eq!((draft.load, draft.repeat.as_str(), draft.until.as_str()), (LoadBy::Vus, "4", "2%"));
    }

    #[test]
    fn every_preset_is_a_valid_plan() {
        for preset in Preset::ALL {
            let draft = Draft::parse(format!("target=a&target=b&size=s&preset={}", preset.key()).as_bytes());
            assert!(draft.plan(&std::collections::BTreeMap::new()).is_ok(), "{preset:?}");
        }
    }
}
