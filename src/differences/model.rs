//! What can differ in the work of two targets, and which differences are accepted. Pure.

use std::{collections::BTreeSet, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A property of the work of two targets that must be equal before their speed is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkFact {
    /// Requests per iteration of the script, including redirects.
    Requests,
    /// Bytes received per request, including headers.
    Bytes,
    /// Bytes sent per request, including headers and handshakes.
    Sent,
    /// The distribution of response statuses.
    Statuses,
    /// Share of the script's checks that passed.
    Checks,
    /// Share of the requests that opened a connection.
    Connections,
    /// The distribution of protocols.
    Protocols,
}

impl WorkFact {
    /// All facts in display order.
    pub const ALL: [Self; 7] =
        [Self::Requests, Self::Bytes, Self::Sent, Self::Statuses, Self::Checks, Self::Connections, Self::Protocols];

    /// Returns the name in JSON, flags and columns.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Sent => "sent",
            Self::Statuses => "statuses",
            Self::Checks => "checks",
            Self::Connections => "connections",
            Self::Protocols => "protocols",
        }
    }

    /// Returns the title, which can be followed by the verb `differ`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requests => "Requests per iteration",
            Self::Bytes => "Response bytes per request",
            Self::Sent => "Request bytes per request",
            Self::Statuses => "Statuses",
            Self::Checks => "Checks passed",
            Self::Connections => "New connections",
            Self::Protocols => "Protocols",
        }
    }
}

impl FromStr for WorkFact {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|fact| fact.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("{text:?} is not a fact that can differ: use {all}")
        })
    }
}

/// A difference that a user has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedDifference {
    /// Its id.
    pub id: i64,
    /// The two targets, sorted. The same target twice accepts a difference between its versions or sizes.
    pub targets: [String; 2],
    /// The scenario; null for all scenarios.
    pub scenario: Option<String>,
    /// The facts that may differ.
    pub facts: BTreeSet<WorkFact>,
    /// Why the difference is acceptable.
    pub note: String,
    /// The user who accepted it.
    pub accepted_by: String,
    /// When it was accepted, unix ms.
    pub accepted_at_ms: i64,
}

/// All accepted differences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DifferenceList {
    /// Newest first.
    pub differences: Vec<AcceptedDifference>,
}

/// A difference to accept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDifference {
    /// The two targets, in any order.
    pub targets: [String; 2],
    /// The scenario; null for all scenarios.
    #[serde(default)]
    pub scenario: Option<String>,
    /// The facts that may differ.
    pub facts: BTreeSet<WorkFact>,
    /// Why the difference is acceptable.
    pub note: String,
}

impl AcceptedDifference {
    /// Whether it accepts this difference between two targets, in any order.
    pub fn covers(&self, targets: [&str; 2], scenario: Option<&str>, fact: WorkFact) -> bool {
        let [one, other] = [self.targets[0].as_str(), self.targets[1].as_str()];
        let is_pair = targets == [one, other] || targets == [other, one];
        is_pair && self.facts.contains(&fact) && self.scenario.as_deref().is_none_or(|own| Some(own) == scenario)
    }

    /// Describes the two targets.
    pub fn pair(&self) -> String {
        let [one, other] = &self.targets;
        if one == other { format!("{one} and itself") } else { format!("{one} and {other}") }
    }

    /// Lists the facts that may differ.
    pub fn facts_text(&self) -> String {
        self.facts.iter().map(|fact| fact.title().to_lowercase()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fact_names_match_in_json_and_text() {
        for fact in WorkFact::ALL {
            assert_eq!(serde_json::to_value(fact).expect("a word"), fact.as_str());
            assert_eq!(fact.as_str().parse(), Ok(fact));
        }
        assert!("speed".parse::<WorkFact>().expect_err("none").contains("use requests, bytes, sent, statuses"));
    }

    #[test]
    fn an_accepted_difference_covers_its_pair_its_scenario_and_its_facts_only() {
        let accepted = AcceptedDifference {
            id: 1,
            targets: ["a".to_owned(), "b".to_owned()],
            scenario: Some("hash".to_owned()),
            facts: [WorkFact::Bytes].into(),
            note: "other headers".to_owned(),
            accepted_by: "ada".to_owned(),
            accepted_at_ms: 0,
        };
        assert!(accepted.covers(["b", "a"], Some("hash"), WorkFact::Bytes));
        assert!(!accepted.covers(["a", "c"], Some("hash"), WorkFact::Bytes));
        assert!(!accepted.covers(["a", "a"], Some("hash"), WorkFact::Bytes));
        assert!(!accepted.covers(["a", "b"], Some("site"), WorkFact::Bytes));
        assert!(!accepted.covers(["a", "b"], None, WorkFact::Bytes));
        assert!(!accepted.covers(["a", "b"], Some("hash"), WorkFact::Statuses));
        let anywhere = AcceptedDifference { scenario: None, ..accepted };
        assert!(anywhere.covers(["a", "b"], None, WorkFact::Bytes));
    }
}
