//! The profile of one run and the unit of its values. Pure.

pub use brewbench_wire::profile::stacks::{Frame, Sample, Stacks};
use serde::{Deserialize, Serialize};

/// The profile of one run with what its requests cost.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// Call stacks of the run.
    pub stacks: &'a Stacks,
    /// CPU time per request of the run in milliseconds, from its control group; None if unknown.
    pub cpu_ms: Option<f64>,
}

/// Unit of all values of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// CPU time per request in milliseconds.
    MsPerRequest,
    /// Percent of the run's CPU time: the CPU time per request of at least one run is unknown.
    Percent,
}

impl Unit {
    /// Returns the unit in which these profiles can be compared.
    pub fn common(profiles: &[Profile<'_>]) -> Self {
        let known = |profile: &Profile<'_>| profile.cpu_ms.is_some_and(|ms| ms.is_finite() && ms > 0.0);
        if profiles.iter().all(known) { Self::MsPerRequest } else { Self::Percent }
    }

    /// Returns the value of a profile's root in this unit.
    pub fn whole(self, profile: &Profile<'_>) -> f64 {
        match self {
            Self::MsPerRequest => profile.cpu_ms.unwrap_or_default(),
            Self::Percent => 100.0,
        }
    }
}
