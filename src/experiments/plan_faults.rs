//! What is wrong with the load, the agents and the generators of a plan. Pure.

use brewbench_wire::job::MAX_CLUSTER_GENERATORS;
use brewbench_wire::{
    engine::Capability,
    load::{Load, Shape},
    run_spec::{HttpVersion, SCALES},
};

use super::{
    plan::Plan,
    sweep::{MAX_LEVELS, Sweep},
};

/// The most load generators. k6 could split the load further, but no setup needs more machines.
const MAX_GENERATORS: usize = 64;

/// Returns the first fault; the sentence starts with the field.
pub fn first(plan: &Plan) -> Option<String> {
    load_fault(plan)
        .or_else(|| totals_fault(plan))
        .or_else(|| place_fault(plan))
        .or_else(|| generators_fault(plan))
        .or_else(|| duet_fault(plan))
}

/// Returns what needs more than the totals that some load generators report.
fn totals_fault(plan: &Plan) -> Option<String> {
    let engine = plan.engine.filter(|engine| !engine.capabilities().contains(&Capability::Series))?;
    let field = match plan {
        Plan { knee: Some(_), .. } => "knee",
        Plan { stopping_rule: Some(_), .. } => "stopping_rule",
        _ => return None,
    };
    Some(format!("{field}: {} reports totals only, so its runs are suspect and decide nothing", engine.as_str()))
}

/// Returns what a duet can't be combined with.
fn duet_fault(plan: &Plan) -> Option<String> {
    let Plan {
        targets, sizes, loads, knee, profiled_repetitions, http_version, generators, cluster_generators, ..
    } = plan;
    if !plan.duet {
        return None;
    }
    let sentence = if targets.len() > 2 || (targets.len() == 1 && plan.against.is_none()) {
        "needs two targets"
    } else if sizes.len() > 1 || loads.len() > 1 || knee.is_some() {
        "needs one size and one load; submit an experiment for each"
    } else if *profiled_repetitions > 0 {
        "can't be combined with profiled_repetitions; profile the targets one after the other"
    } else if *http_version == HttpVersion::Http2 {
        "can't be combined with http_version 2; duets use HTTP/1.1"
    } else if !generators.is_empty() || *cluster_generators > 0 {
        "can't be combined with generators; the agent of the targets generates the load"
    } else {
        return None;
    };
    Some(format!("duet: {sentence}"))
}

/// Returns what is wrong with the load, the knee search or the stopping rule.
fn load_fault(plan: &Plan) -> Option<String> {
    let Plan { loads, knee, stopping_rule: until, scale, .. } = plan;
    if scale.is_some_and(|scale| !SCALES.contains(&scale)) {
        return Some(format!("scale: must be between {} and {}", SCALES.start(), SCALES.end()));
    }
    if scale.is_some() && (knee.is_some() || loads.iter().any(|load| *load != Load::Script)) {
        return Some("scale: only the script's own load can be scaled; omit the other load".to_owned());
    }
    if loads.len() > MAX_LEVELS {
        return Some(format!("loads: {} given; at most {MAX_LEVELS} are allowed", loads.len()));
    }
    if loads.iter().enumerate().any(|(index, load)| loads[..index].contains(load)) {
        return Some("loads: one is named twice".to_owned());
    }
    if loads.len() > 1 && Sweep::from_loads(loads).is_none() {
        let sentence = "loads: several loads must be constant, of the same kind and duration, and differ only in level";
        return Some(sentence.to_owned());
    }
    if let Some(knee) = knee {
        let fault = knee.fault();
        return match (loads.is_empty(), until.is_none()) {
            (true, true) => fault.map(|fault| format!("knee: {fault}")),
            (false, _) => Some("knee: can't be combined with loads; a knee search chooses its own rates".to_owned()),
            (_, false) => {
                Some("knee: can't be combined with stopping_rule; a knee search decides when to stop".to_owned())
            }
        };
    }
    until.as_ref()?.fault(plan).map(|fault| format!("stopping_rule: {fault}"))
}

/// Returns what is wrong with the choice of agents.
fn place_fault(plan: &Plan) -> Option<String> {
    let Plan { agent, agent_label, spread, generators, knee, stopping_rule: until, .. } = plan;
    if let (Some(agent), Some(_)) = (agent, agent_label) {
        return Some(format!("agent_label: can't be combined with agent {agent}; omit one of them"));
    }
    if !spread {
        return None;
    }
    if let Some(agent) = agent {
        return Some(format!("spread: can't be combined with agent {agent}; omit one of them"));
    }
    let sentence = if !generators.is_empty() {
        "spread: can't be combined with generators, which load one machine at a time"
    } else if knee.is_some() {
        "spread: can't be combined with knee, which chooses each rate from results of the same machine"
    } else if until.is_some() {
        "spread: can't be combined with stopping_rule, because differences between machines keep the intervals wide"
    } else {
        return None;
    };
    Some(sentence.to_owned())
}

/// Returns what is wrong with the load generators.
fn generators_fault(plan: &Plan) -> Option<String> {
    let Plan { generators, cluster_generators, agent, loads, knee, .. } = plan;
    if *cluster_generators > MAX_CLUSTER_GENERATORS {
        return Some(format!("cluster_generators: at most {MAX_CLUSTER_GENERATORS} are allowed"));
    }
    if *cluster_generators > 0 && !generators.is_empty() {
        return Some("cluster_generators: can't be combined with generators; omit one of them".to_owned());
    }
    if generators.len() > MAX_GENERATORS {
        return Some(format!("generators: {} named; at most {MAX_GENERATORS} are allowed", generators.len()));
    }
    if generators.iter().enumerate().any(|(index, name)| generators[..index].contains(name)) {
        return Some("generators: one is named twice".to_owned());
    }
    if let Some(both) = agent.as_ref().filter(|agent| generators.contains(agent)) {
        return Some(format!("generators: {both} runs the target; name other agents, or omit generators"));
    }
    // Each generator needs at least one VU or iteration per second.
    let levels =
        loads.iter().filter_map(|load| load.shape().map(Shape::peak)).chain(knee.as_ref().map(|knee| knee.from));
    let least = levels.min()?;
    if least < *cluster_generators {
        return Some(format!(
            "cluster_generators: a load of {least} can't be split between {cluster_generators} generators"
        ));
    }
    (u64::from(least) < generators.len() as u64)
        .then(|| format!("generators: a load of {least} can't be split between {} agents", generators.len()))
}
