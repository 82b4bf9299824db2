//! What an agent offers for one target, and why that is not enough for a run. Pure.

use brewbench_wire::{
    engine::Capability,
    manifest::source::split_target,
    messages::{Hello, Machine, TargetOffer},
    profile::ProfileOffer,
    scenarios,
    target::TargetKind,
};

use crate::{
    runs::model::{RunSize, RunSpec},
    web::format,
};

/// One target as one agent offers it.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    target: &'a TargetOffer,
    /// What the agent said of itself.
    pub agent: &'a Hello,
}

/// Why an agent can't host a run, regardless of what it is doing now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It does not offer the target.
    NotOffered,
    /// The machine size is too large for it; describes what it has.
    TooSmall(String),
    /// The machine size has replicas, and its target can't.
    NoReplicas,
    /// Other agents would generate the load, and it can't accept that; says why.
    NoLoad(&'static str),
    /// It can't generate the load in its cluster; says why.
    NoCluster(String),
    /// It can't run the target in a duet; says why.
    NoDuet(&'static str),
    /// It runs bundled scenarios only.
    Script,
    /// Its load generator lacks a capability; says which.
    NoEngine(String),
    /// It can't profile the target; says why.
    NoProfile(String),
}

/// Why an agent can't start replicas of a target; the end of a sentence about it.
pub const NO_REPLICAS: &str = "starts one instance of it only: replicas need a target of kind kubernetes";

/// Returns why an agent can't host a run. The form, the queue and the assignment share this rule.
pub fn unfit(spec: &RunSpec, agent: &Hello) -> Option<Unfit> {
    Offer::find(agent, &spec.target).map_or(Some(Unfit::NotOffered), |offer| offer.unfit(spec))
}

/// Whether an agent refuses a scenario because it runs bundled ones only.
pub fn lacks_script(spec: &RunSpec, agent: &Hello) -> bool {
    let is_own = |sha256: &String| !scenarios::is_bundled_hash(sha256);
    !agent.any_scenario && spec.scenario_sha256.as_ref().is_some_and(is_own)
}

/// Returns why the load generator of an agent can't generate the load of a run: the field of a plan that asks for too
/// much, and the end of a sentence about the agent.
pub fn engine_obstacle(spec: &RunSpec, agent: &Hello) -> Option<(&'static str, String)> {
    let name = spec.engine().as_str();
    let Some(engine) = agent.engines.iter().find(|engine| engine.name == name) else {
        return Some(("engine", format!("has no load generator {name}")));
    };
    let lacks = |(_, capability): &(&str, Capability)| !engine.capabilities.contains(capability);
    let (field, capability) = spec.needs().into_iter().find(lacks)?;
    Some((field, format!("has {}, which can't {capability}", engine.version())))
}

/// Returns why an agent can start no target of a machine size, if it can't.
pub fn size_fault(size: &RunSize, agent: &Hello) -> Option<String> {
    let mut kinds = agent.targets.iter().map(|offer| offer.identity.kind());
    // A Pod needs nothing of the agent's machine.
    if kinds.any(TargetKind::may_replicate) {
        return None;
    }
    if size.replicas > 1 {
        return Some("offers no target of kind kubernetes".to_owned());
    }
    lacks(size, &agent.machine)
}

/// Returns why a machine is too small for a machine size, if it is.
fn lacks(size: &RunSize, machine: &Machine) -> Option<String> {
    if size.vcpus > f64::from(machine.cores) {
        return Some(format!("has {}", format::plural(machine.cores as usize, "core")));
    }
    (size.memory_bytes > machine.memory_bytes)
        .then(|| format!("has {:.1} GiB of memory", machine.memory_bytes as f64 / (1024.0 * 1024.0 * 1024.0)))
}

impl<'a> Offer<'a> {
    /// Finds the offer of an agent.
    pub fn find(agent: &'a Hello, target: &str) -> Option<Self> {
        let (name, revision) = split_target(target);
        let can = |offer: &&TargetOffer| {
            revision.is_none_or(|revision| !offer.revisions.is_empty() || offer.version == revision)
        };
        let target = agent.targets.iter().find(|offer| offer.name == name).filter(can)?;
        Some(Self { target, agent })
    }

    /// Whether its program is known to compile while it runs.
    pub fn compiles_at_run_time(self) -> bool {
        self.target.compiles_at_run_time
    }

    fn kind(self) -> TargetKind {
        self.target.identity.kind()
    }

    fn unfit(self, spec: &RunSpec) -> Option<Unfit> {
        if let Some(size) = &spec.size {
            if let Some(has) = self.size_obstacle(size, spec.duet) {
                return Some(Unfit::TooSmall(has));
            }
            if !self.replicates(size) {
                return Some(Unfit::NoReplicas);
            }
        }
        if !spec.generators.is_empty() {
            // The generators run the script, not the host.
            if let Some(why) = self.load_obstacle() {
                return Some(Unfit::NoLoad(why));
            }
        } else if lacks_script(spec, self.agent) {
            return Some(Unfit::Script);
        }
        if let Some(why) = self.cluster_obstacle(spec.cluster_generators) {
            return Some(Unfit::NoCluster(why));
        }
        if let Some(why) = self.duet_obstacle(spec.duet) {
            return Some(Unfit::NoDuet(why));
        }
        if spec.generators.is_empty()
            && let Some((_, why)) = engine_obstacle(spec, self.agent)
        {
            return Some(Unfit::NoEngine(why));
        }
        if spec.profiled { self.profile_obstacle().map(Unfit::NoProfile) } else { None }
    }

    /// Whether it can have the replicas of a machine size.
    pub fn replicates(self, size: &RunSize) -> bool {
        size.replicas == 1 || self.kind().may_replicate()
    }

    /// Returns why its machine is too small for a machine size, twice in a duet: its targets are in memory at the same
    /// time, but use the cores in turns.
    pub fn size_obstacle(self, size: &RunSize, is_duet: bool) -> Option<String> {
        if self.kind().is_elsewhere() {
            return None;
        }
        let twice = RunSize { memory_bytes: size.memory_bytes.saturating_mul(2), ..size.clone() };
        lacks(if is_duet { &twice } else { size }, &self.agent.machine)
    }

    /// Returns why a duet can't have it; the end of a sentence about the agent.
    pub fn duet_obstacle(self, is_duet: bool) -> Option<&'static str> {
        (is_duet && self.kind().is_elsewhere())
            .then_some("does not run the target on its own machine, as a duet requires")
    }

    /// Returns why other agents can't load it; the end of a sentence about the agent.
    pub fn load_obstacle(self) -> Option<&'static str> {
        if self.kind().is_elsewhere() {
            return Some("reaches a target outside its machine, which only the agent with its manifest may load");
        }
        if self.agent.load_address.is_none() {
            return Some("accepts no load from other agents: start it with --load-address");
        }
        let listens = self.target.anywhere;
        (!listens).then_some("has a manifest without {host} for it, so the target can't listen for other machines")
    }

    /// Returns why this many generators in the cluster of the agent can't load it; the end of a sentence about the
    /// agent.
    pub fn cluster_obstacle(self, count: u32) -> Option<String> {
        if count == 0 {
            return None;
        }
        match self.agent.generators {
            None => Some("generates no load in a cluster: start it with --kubernetes and --generators".to_owned()),
            Some(offer) if offer.most < count => Some(format!("allows {} generators at most", offer.most)),
            // Pods can't reach a target that listens on the loopback interface of the agent's machine.
            Some(_) if !self.kind().is_elsewhere() => {
                Some(format!("runs {:?} on its own machine, where Pods can't reach it", self.target.name))
            }
            Some(_) => None,
        }
    }

    /// Returns why the agent can't profile it.
    pub fn profile_obstacle(self) -> Option<String> {
        match &self.target.profile {
            Some(ProfileOffer::Ready { .. }) => None,
            Some(ProfileOffer::Impossible { reason }) => Some(reason.clone()),
            None => Some("it does not say that it can".to_owned()),
        }
    }
}
