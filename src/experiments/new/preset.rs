//! Presets of the form: load and repetitions for a common purpose. Pure.

use super::draft::{Draft, LoadBy};

/// A purpose.
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
            Self::Quick => "Quick look",
            Self::Decide => "Decide (until ±2 %)",
            Self::Limit => "Find the limit",
        }
    }

    /// What it sets.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Quick => "10 virtual users for 5 s, four repetitions",
            Self::Decide => {
                "10 virtual users for 10 s, until the 95 % interval is narrower than 2 %, at most 20 repetitions"
            }
            Self::Limit => "searches the highest rate that meets an objective",
        }
    }

    /// Fills in the load and the repetitions. Everything else stays.
    pub fn apply(self, draft: &mut Draft) {
        let (load, duration, warm_up, repeat, until) = match self {
            Self::Quick => (LoadBy::Vus, "5s", "1s", "4", ""),
            Self::Decide => (LoadBy::Vus, "10s", "2s", "4", "2%"),
            Self::Limit => (LoadBy::Knee, "10s", "2s", "4", ""),
        };
        let Draft { vus, at_most, .. } = Draft::default();
        (draft.load, draft.vus, draft.at_most) = (load, vus, at_most);
        (draft.duration, draft.warm_up) = (duration.to_owned(), warm_up.to_owned());
        (draft.repeat, draft.until) = (repeat.to_owned(), until.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
