//! The first steps of a new installation. Pure.

use crate::web::format::plural;

/// A step.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether it is done.
    pub is_done: bool,
    /// What is done, or what to do.
    pub title: String,
    /// What it is about.
    pub text: &'static str,
    /// Path and label of the action.
    pub action: (&'static str, &'static str),
}

/// The steps of a new installation, in order. The last one is done with the first run, when the steps are gone.
#[derive(Debug, PartialEq, Eq)]
pub struct Steps(pub [Step; 3]);

impl Steps {
    /// Describes how far an installation is.
    pub fn new(connected: &[&str], targets: usize) -> Self {
        let agents = match connected {
            [] => "Connect an agent".to_owned(),
            [one] => format!("Agent connected: {one}"),
            several => format!("{} connected", plural(several.len(), "agent")),
        };
        let targets_title =
            if targets == 0 { "Find a target".to_owned() } else { format!("{} found", plural(targets, "target")) };
        Self([
            Step {
                is_done: !connected.is_empty(),
                title: agents,
                text: "An agent runs targets and load on a machine.",
                action: ("/agents", "Add agent"),
            },
            Step {
                is_done: targets > 0,
                title: targets_title,
                text: "A target is a server implementation that an agent can start.",
                action: ("/targets/new", "Add target"),
            },
            Step {
                is_done: false,
                title: "First comparison".to_owned(),
                text: "Measure two targets and see which one is faster.",
                action: ("/experiments/new", "New run"),
            },
        ])
    }

    /// Returns how many steps are done.
    pub fn done(&self) -> usize {
        self.0.iter().filter(|step| step.is_done).count()
    }

    /// Whether this step is the next one, the only one with a button.
    pub fn is_next(&self, step: &Step) -> bool {
        self.0.iter().find(|other| !other.is_done) == Some(step)
    }
}
