//! Status of a Pod as the API shows it. Pure.

use std::{collections::BTreeMap, net::Ipv4Addr};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    container::{Container, Exit, State},
    node::time,
};

/// What the status is made of.
#[derive(Debug)]
pub struct Facts<'a> {
    pub init: &'a [Container],
    pub main: &'a [Container],
    pub started: Timestamp,
    pub host: Ipv4Addr,
    pub address: Option<Ipv4Addr>,
    pub evicted: bool,
    pub terminating: bool,
}

/// The condition types that a kubelet sets, with their state and since when it holds.
pub type Conditions = BTreeMap<&'static str, (bool, String)>;

/// Returns the status, for a strategic merge, in which conditions of others stay.
///
/// A condition keeps its time while its state does not change.
pub fn of(facts: &Facts<'_>, conditions: &mut Conditions) -> Value {
    let phase = phase(facts);
    let is_initialized = facts.init.iter().all(|container| container.exit().is_some_and(|exit| exit.code == 0));
    let is_ready = phase == "Running" && facts.main.iter().all(Container::is_ready);
    let current = [
        ("PodReadyToStartContainers", facts.address.is_some()),
        ("Initialized", is_initialized),
        ("ContainersReady", is_ready),
        ("Ready", is_ready && !facts.terminating),
    ];
    // Only a Pod that is disrupted has this condition.
    let disrupted = facts.evicted.then_some(("DisruptionTarget", true));
    let now = time(Timestamp::now());
    for (kind, state) in current.into_iter().chain(disrupted) {
        let known = conditions.entry(kind).or_insert_with(|| (state, now.clone()));
        if known.0 != state {
            *known = (state, now.clone());
        }
    }
    let mut list = Vec::new();
    for (kind, (state, since)) in &*conditions {
        let mut condition = json!({
            "type": kind, "status": if *state { "True" } else { "False" }, "lastTransitionTime": since,
        });
        if !state && kind.ends_with("Ready") {
            let reason = if facts.main.iter().all(|container| container.exit().is_some()) {
                "PodCompleted"
            } else {
                "ContainersNotReady"
            };
            condition["reason"] = reason.into();
        }
        if *kind == "DisruptionTarget" {
            condition["reason"] = "TerminationByKubelet".into();
        }
        list.push(condition);
    }
    let mut status = json!({
        "phase": phase,
        "conditions": list,
        "hostIP": facts.host,
        "hostIPs": [{"ip": facts.host}],
        "startTime": time(facts.started),
        "initContainerStatuses": facts.init.iter().map(container).collect::<Vec<_>>(),
        "containerStatuses": facts.main.iter().map(container).collect::<Vec<_>>(),
    });
    if let Some(address) = facts.address {
        status["podIP"] = address.to_string().into();
        status["podIPs"] = json!([{"ip": address}]);
    }
    if facts.evicted {
        status["reason"] = "Evicted".into();
        status["message"] = "The node was low on resource: memory.".into();
    }
    status
}

/// Returns the phase of the Pod.
pub fn phase(facts: &Facts<'_>) -> &'static str {
    let failed = |container: &Container| container.exit().is_some_and(|exit| exit.code != 0);
    let all = || facts.init.iter().chain(facts.main);
    let has_ended = facts.main.iter().all(|container| container.exit().is_some()) || facts.init.iter().any(failed);
    if facts.evicted || (has_ended && all().any(failed)) {
        "Failed"
    } else if has_ended {
        "Succeeded"
    } else if facts.main.iter().any(has_started) {
        "Running"
    } else {
        "Pending"
    }
}

fn has_started(container: &Container) -> bool {
    container.last.is_some() || !matches!(container.state, State::Waiting { .. })
}

fn container(container: &Container) -> Value {
    let state = match &container.state {
        State::Waiting { reason, message, .. } if message.is_empty() => json!({"waiting": {"reason": reason}}),
        State::Waiting { reason, message, .. } => json!({"waiting": {"reason": reason, "message": message}}),
        State::Running { started, .. } => json!({"running": {"startedAt": time(*started)}}),
        State::Terminated(exit) => terminated(exit),
    };
    let id = match &container.state {
        State::Waiting { .. } => container.last.as_ref().map(|exit| &exit.id),
        State::Running { id, .. } => Some(id),
        State::Terminated(exit) => Some(&exit.id),
    };
    let mut status = json!({
        "name": container.spec.name,
        "image": container.spec.image,
        "imageID": container.image_id,
        "ready": container.is_ready(),
        "started": container.has_started(),
        "restartCount": container.restarts,
        "state": state,
    });
    if let Some(id) = id {
        status["containerID"] = format!("brewbench://{id}").into();
    }
    if let Some(exit) = &container.last {
        status["lastState"] = terminated(exit);
    }
    status
}

fn terminated(exit: &Exit) -> Value {
    let Exit { id, code, reason, started, finished, message } = exit;
    let mut state = json!({"terminated": {
        "containerID": format!("brewbench://{id}"),
        "exitCode": code,
        "reason": reason,
        "startedAt": time(*started),
        "finishedAt": time(*finished),
    }});
    if !message.is_empty() {
        state["terminated"]["message"] = message.as_str().into();
    }
    state
}
