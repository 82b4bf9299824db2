//! A target that serves, and what is left of it once it is stopped.

use std::io;
use std::time::Duration;

use brewbench_wire::outcome::{Enforced, Observed};

use super::answer::ReferenceResponse;
use crate::host::environment::Facts;
use crate::run::address_policy::LoadLimits;

/// A target that serves.
#[derive(Debug)]
pub struct Serving {
    /// Base URL.
    pub base_url: String,
    /// Its response before the load.
    pub known: ReferenceResponse,
    /// From its start to its first verified response; `None` if it was running already.
    pub startup: Option<Duration>,
    /// Time to open a connection to it, if it is not on this machine.
    pub round_trip: Option<Duration>,
    /// Which limits are in force, if that is known only now.
    pub enforced: Option<Enforced>,
    /// Whether its CPU is emulated; `None` if it is not a virtual machine.
    pub emulated: Option<bool>,
    /// Whether other Pods of its node may use its cores; `None` for other kinds.
    pub shares_cores: Option<bool>,
    /// Id of its image, which is known only now.
    pub image_id: Option<String>,
    /// What the load may reach in addition to what the agent's owner allows for all targets.
    pub reach: Option<LoadLimits>,
    /// Facts that are known once it serves.
    pub facts: Facts,
}

impl Serving {
    /// A target that was started on this machine.
    pub(super) fn of(known: ReferenceResponse) -> Self {
        Self {
            base_url: known.base_url().to_owned(),
            known,
            startup: None,
            round_trip: None,
            enforced: None,
            emulated: None,
            shares_cores: None,
            image_id: None,
            reach: None,
            facts: Facts::new(),
        }
    }
}

/// What is left of a stopped target.
#[derive(Debug, Default)]
pub struct Ended {
    /// Its output; only the end if it is long.
    pub log: String,
    /// Counters of its group.
    pub observed: Option<Observed>,
    /// Errors while stopping it or removing its group.
    pub faults: Vec<io::Error>,
}
