//! What the Pod of a target does, by its status. Pure.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

/// Reasons why a container waits that do not pass by themselves.
const HOPELESS: [&str; 6] = [
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
];
/// Reasons that are retried, and give up only after a time.
const PULLING: [&str; 2] = ["ErrImagePull", "ImagePullBackOff"];

/// The state of a Pod with one container. Of several Pods, the greatest state is that of all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Its container runs.
    Runs,
    /// It prepares to run, e.g. pulls its image; what it waits for.
    Waiting(String),
    /// It has no node yet; why.
    Unscheduled(String),
    /// Its image can't be pulled so far.
    PullFails(String),
    /// It can't start.
    Broken(String),
    /// Its container ran, and has ended.
    Ended(Exit),
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exit {
    /// The end of a sentence.
    pub reason: String,
    /// Whether the kernel killed it because its memory limit was reached.
    pub is_memory: bool,
    /// Its exit code, if its container has ended.
    pub code: Option<i32>,
}

impl State {
    /// Reads the status of a Pod.
    pub fn from_pod(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        if status.phase.as_deref() == Some("Failed") && status.reason.is_some() {
            let reason = join_reason(status.reason.as_deref(), status.message.as_deref());
            return Self::Ended(Exit { reason, ..Exit::default() });
        }
        if pod.metadata.deletion_timestamp.is_some() {
            let disrupted = status.conditions.iter().flatten().find(|one| one.type_ == "DisruptionTarget");
            let why = disrupted.map_or_else(String::new, |one| {
                format!(": {}", join_reason(one.reason.as_deref(), one.message.as_deref()))
            });
            return Self::Ended(Exit { reason: format!("its Pod was deleted{why}"), ..Exit::default() });
        }
        if let Some(exit) = Exit::of_preparation(&status) {
            return Self::Ended(exit);
        }
        match status.container_statuses.as_deref() {
            Some([container]) => match Self::of_container(container) {
                Self::Runs if status.pod_ip.is_none() => Self::Waiting("it has no address yet".to_owned()),
                state => state,
            },
            _ => Self::before_containers(&status),
        }
    }

    fn before_containers(status: &k8s_openapi::api::core::v1::PodStatus) -> Self {
        let scheduled = status.conditions.iter().flatten().find(|one| one.type_ == "PodScheduled");
        match scheduled {
            Some(condition) if condition.status == "True" => Self::Waiting("its node prepares it".to_owned()),
            Some(condition) => {
                Self::Unscheduled(join_reason(condition.reason.as_deref(), condition.message.as_deref()))
            }
            None => Self::Unscheduled("the scheduler has not seen it yet".to_owned()),
        }
    }

    fn of_container(container: &ContainerStatus) -> Self {
        let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        // Kubernetes restarts what ends; a run does not go on with another process.
        if let Some(last) = last.filter(|_| container.restart_count > 0) {
            return Self::Ended(Exit::from_terminated(last));
        }
        let state = container.state.clone().unwrap_or_default();
        if let Some(ended) = &state.terminated {
            return Self::Ended(Exit::from_terminated(ended));
        }
        if state.running.is_some() {
            return Self::Runs;
        }
        let waiting = state.waiting.unwrap_or_default();
        let (reason, message) = (waiting.reason.unwrap_or_default(), waiting.message);
        let text = join_reason(Some(&reason), message.as_deref());
        match reason.as_str() {
            reason if HOPELESS.contains(&reason) => Self::Broken(text),
            reason if PULLING.contains(&reason) => Self::PullFails(text),
            _ => Self::Waiting(text),
        }
    }
}

impl Exit {
    /// Returns how an init container failed in a Pod that has therefore ended.
    fn of_preparation(status: &k8s_openapi::api::core::v1::PodStatus) -> Option<Self> {
        let mut ended = status.init_container_statuses.iter().flatten().filter_map(|container| {
            let exit = container.state.as_ref()?.terminated.as_ref()?;
            Some((&container.name, Self::from_terminated(exit)))
        });
        let (name, exit) = ended.find(|(_, exit)| exit.code != Some(0))?;
        let reason = format!("its init container {name} failed: {}", exit.reason);
        (status.phase.as_deref() == Some("Failed")).then_some(Self { reason, ..exit })
    }

    fn from_terminated(ended: &ContainerStateTerminated) -> Self {
        let reason = ended.reason.as_deref().unwrap_or_default();
        let is_memory = reason == "OOMKilled";
        let reason = match ended.signal {
            _ if is_memory => "OOM-killed".to_owned(),
            Some(signal @ 1..) => format!("killed by signal {signal}"),
            _ if ended.exit_code > 128 => format!("exit status {} (signal {})", ended.exit_code, ended.exit_code - 128),
            _ => format!("exit status {}", ended.exit_code),
        };
        let message = ended.message.as_deref().filter(|_| !is_memory).map(str::trim).filter(|text| !text.is_empty());
        let reason = message.map_or(reason.clone(), |message| format!("{reason}: {message}"));
        Self { reason, is_memory, code: Some(ended.exit_code) }
    }
}

fn join_reason(reason: Option<&str>, message: Option<&str>) -> String {
    let parts = [reason, message].into_iter().flatten().map(str::trim).filter(|text| !text.is_empty());
    parts.collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(status: &Value) -> State {
        State::from_pod(&serde_json::from_value(json!({"metadata": {}, "status": status})).expect("a Pod"))
    }

    fn container(state: &Value) -> State {
        let container =
            json!({"name": "target", "image": "a", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        self::state(&json!({"containerStatuses": [container], "podIP": "10.0.0.9"}))
    }

    #[test]
    fn a_pod_goes_from_unscheduled_to_running() {
        assert_eq!(state(&json!({})), State::Unscheduled("the scheduler has not seen it yet".to_owned()));
        let unschedulable = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu."});
        let words = "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.";
        assert_eq!(state(&json!({"conditions": [unschedulable]})), State::Unscheduled(words.to_owned()));
        let scheduled = json!({"conditions": [{"type": "PodScheduled", "status": "True"}]});
        assert_eq!(state(&scheduled), State::Waiting("its node prepares it".to_owned()));
        let waiting = container(&json!({"waiting": {"reason": "ContainerCreating"}}));
        assert_eq!(waiting, State::Waiting("ContainerCreating".to_owned()));
        assert_eq!(container(&json!({"running": {}})), State::Runs);
        let running = json!({"name": "target", "image": "a", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {}}});
        let waiting = State::Waiting("it has no address yet".to_owned());
        assert_eq!(state(&json!({"containerStatuses": [running]})), waiting);
    }

    #[test]
    fn failed_pulls_are_retried_and_invalid_pods_are_not() {
        let pull = json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\""}});
        assert_eq!(container(&pull), State::PullFails("ImagePullBackOff: Back-off pulling image \"x\"".to_owned()));
        let config = json!({"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"x\" not found"}});
        assert!(matches!(container(&config), State::Broken(text) if text.contains("secret")));
    }

    #[test]
    fn a_pod_whose_init_container_failed_has_ended() {
        let container = |name: &str, state: Value| json!({"name": name, "image": "a", "imageID": "", "ready": false, "restartCount": 0, "state": state});
        let initial = container("scenario", json!({"terminated": {"exitCode": 1, "message": "no space left"}}));
        let waiting = container("k6", json!({"waiting": {"reason": "PodInitializing"}}));
        let with = |phase: &str| {
            let status = json!({"phase": phase, "initContainerStatuses": [initial], "containerStatuses": [waiting]});
            state(&status)
        };
        let words = "its init container scenario failed: exit status 1: no space left";
        assert_eq!(with("Failed"), State::Ended(Exit { reason: words.to_owned(), code: Some(1), is_memory: false }));
        assert_eq!(with("Pending"), State::Waiting("PodInitializing".to_owned()), "it is started again");
    }

    #[test]
    fn an_end_is_one_whatever_follows_it() {
        let oom = container(&json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}));
        assert_eq!(oom, State::Ended(Exit { reason: "OOM-killed".to_owned(), is_memory: true, code: Some(137) }));
        let restarted = json!({"name": "target", "image": "a", "imageID": "", "ready": true, "restartCount": 1,
            "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no\n"}}});
        let ended = State::Ended(Exit { reason: "exit status 3: no".to_owned(), is_memory: false, code: Some(3) });
        assert_eq!(state(&json!({"containerStatuses": [restarted]})), ended);
        let evicted =
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
        let words = "Evicted: The node was low on resource: memory.";
        assert_eq!(state(&evicted), State::Ended(Exit { reason: words.to_owned(), ..Exit::default() }));
    }
}
