//! A load on a target, in words of all load generators.

use std::time::Duration;

use brewbench_wire::job::Segment;
use brewbench_wire::series::WindowKind;

use crate::run::address_policy::{AddressPolicy, LoadLimits};

/// The purpose of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Its results are discarded.
    WarmUp,
    /// Its results count.
    Measure,
}

impl Round {
    /// Returns the part of the series that it makes.
    pub fn part(self) -> WindowKind {
        match self {
            Self::WarmUp => WindowKind::WarmUp,
            Self::Measure => WindowKind::Measured,
        }
    }
}

/// The bounds of a load.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum duration, with the load generator's own start and end.
    pub longest: Duration,
    /// The script's limit of requests per second.
    pub rps_limit: Option<f64>,
}

/// The load on a running target.
#[derive(Clone, Copy, Debug)]
pub struct LoadTarget<'a> {
    /// Base URL of the target.
    pub base_url: &'a str,
    /// The part of the load, if other agents generate the rest.
    pub segment: Option<Segment>,
    /// The CPUs that the load generator may use.
    pub cores: &'a [usize],
    /// Which addresses a script may load.
    pub reach: AddressPolicy,
    /// What it may load in addition, if the agent did not start the target.
    pub own: Option<&'a LoadLimits>,
}
