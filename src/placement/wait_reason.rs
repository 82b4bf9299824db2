//! Explains for which agents a run waits, and why. The assignment uses the same rules. Pure.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    fleet::{
        model::{Agent, Availability},
        presence::Connected,
    },
    placement::{
        feasibility::Needs,
        offer::{NO_REPLICAS, Unfit, unfit},
    },
    runs::model::RunSpec,
};

mod generators;

pub use generators::generators_wait;

/// The agents that may host a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EligibleAgents {
    /// Any able agent.
    Any,
    /// Any able agent that has this label now.
    Labelled(String),
    /// The agent that the run was submitted for.
    Only(String),
    /// The agent on which its block has started: its experiment or, if that is spread over agents, its repetition.
    /// Labels no longer matter.
    Home(String),
    /// The agents that can do its whole experiment, and have the label that it requires.
    OneOf(Arc<BTreeSet<String>>),
}

impl EligibleAgents {
    fn admits(&self, name: &str, agent: &Connected) -> bool {
        match self {
            Self::Any => true,
            Self::Labelled(label) => agent.has_label(label),
            Self::Only(only) | Self::Home(only) => only == name,
            Self::OneOf(names) => names.contains(name),
        }
    }
}

/// Why an agent can't host a run, even when it is free; the first that applies is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ineligible {
    /// Another agent was requested, or it generates the load of this run.
    NotRequested,
    /// It does not meet the run's needs.
    Unfit(Unfit),
    /// It has declined this run on its current connection.
    Declined,
}

/// Returns why an agent can't host a run, if it can't.
pub fn ineligible(needs: &Needs<'_>, eligible: &EligibleAgents, name: &str, agent: &Connected) -> Option<Ineligible> {
    // A generator never hosts the target: both would share its cores.
    if !eligible.admits(name, agent) || needs.spec.generators.iter().any(|generator| generator == name) {
        return Some(Ineligible::NotRequested);
    }
    let has_declined = needs.run.is_some_and(|run| agent.declined.contains(&run));
    let declined = || has_declined.then_some(Ineligible::Declined);
    unfit(needs.spec, &agent.hello).map(Ineligible::Unfit).or_else(declined)
}

/// Why a run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitCode {
    /// Its experiment is paused.
    Paused,
    /// The requested agent is not connected, or no agent is.
    Away,
    /// The requested agent is disabled.
    Disabled,
    /// No connected agent offers the target.
    NotOffered,
    /// No agent that offers the target is large enough for the machine size.
    DoesNotFit,
    /// No able agent accepts load from other agents.
    NoLoadAddress,
    /// No able agent runs user scenarios.
    ScriptNotTaken,
    /// No able agent can profile the target.
    NoProfiler,
    /// All able agents declined it.
    Declined,
    /// All able agents are drained.
    Drained,
    /// All able agents take no runs, for a fault of their machines.
    Faulty,
    /// All able agents are busy.
    Busy,
    /// It is about to be assigned.
    Soon,
}

/// For which agents a run waits, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitReason {
    /// The reason as a code.
    pub reason: WaitCode,
    /// The reason as a sentence.
    pub sentence: String,
    /// The agents that can do it and accept runs.
    pub agents: Vec<String>,
}

impl WaitReason {
    fn without_agents(reason: WaitCode, sentence: impl Into<String>) -> Self {
        Self { reason, sentence: sentence.into(), agents: Vec::new() }
    }
}

/// Returns the wait reason of a run whose experiment is paused.
pub fn paused(by: Option<&str>) -> WaitReason {
    let by = by.map_or(String::new(), |by| format!(" by {by}"));
    WaitReason::without_agents(WaitCode::Paused, format!("its experiment is paused{by}"))
}

/// Returns why a run waits whose experiment is not paused.
pub fn wait_reason(
    needs: &Needs<'_>,
    eligible: &EligibleAgents,
    connected: &[(String, Connected)],
    known: &[Agent],
) -> WaitReason {
    let candidates: Vec<_> = connected.iter().filter(|(name, agent)| eligible.admits(name, agent)).collect();
    if candidates.is_empty() {
        return absent(needs, eligible, known);
    }
    let checked: Vec<_> =
        candidates.iter().map(|(name, agent)| (name, agent, ineligible(needs, eligible, name, agent))).collect();
    let able: Vec<_> = checked.iter().filter(|(.., obstacle)| obstacle.is_none()).collect();
    if able.is_empty() {
        let obstacles: Vec<(&str, &Ineligible)> =
            checked.iter().filter_map(|(name, _, obstacle)| Some((name.as_str(), obstacle.as_ref()?))).collect();
        return unable(needs, &obstacles);
    }
    let enabled: Vec<_> = able.iter().filter(|(_, agent, _)| agent.availability == Availability::Enabled).collect();
    let faults = enabled.iter().map(|(name, agent, _)| agent.fault.as_ref().map(|fault| (name, fault)));
    if let Some(Some((name, fault))) = faults.collect::<Option<Vec<_>>>().map(|faults| faults.first().copied()) {
        return WaitReason::without_agents(WaitCode::Faulty, format!("{name} {}", takes_none(fault)));
    }
    let enabled: Vec<_> = enabled.into_iter().filter(|(_, agent, _)| agent.fault.is_none()).collect();
    let agents: Vec<String> = enabled.iter().map(|(name, ..)| (*name).clone()).collect();
    if agents.is_empty() {
        let names: Vec<&str> = able.iter().map(|(name, ..)| name.as_str()).collect();
        return WaitReason::without_agents(WaitCode::Drained, format!("{} drained", are(&names)));
    }
    let generators = generators_wait(needs, connected, known);
    if let Some(wait) = generators.as_ref().filter(|wait| wait.reason != WaitCode::Busy) {
        return wait.clone();
    }
    if enabled.iter().any(|(_, agent, _)| agent.is_free()) {
        if let Some(wait) = generators {
            return WaitReason { agents, ..wait };
        }
        return WaitReason { reason: WaitCode::Soon, sentence: "it is about to start".to_owned(), agents };
    }
    let names: Vec<&str> = agents.iter().map(String::as_str).collect();
    WaitReason { reason: WaitCode::Busy, sentence: format!("{} busy", are(&names)), agents }
}

/// Describes that no eligible agent is connected.
fn absent(needs: &Needs<'_>, eligible: &EligibleAgents, known: &[Agent]) -> WaitReason {
    let name = match eligible {
        EligibleAgents::Only(name) => name,
        EligibleAgents::Home(name) => {
            let what = if needs.block > 0 { "repetition" } else { "experiment" };
            let sentence = format!(
                "its {what} is measured on {name}, which is not connected; disable or remove {name} to continue on \
                another agent"
            );
            return WaitReason::without_agents(WaitCode::Away, sentence);
        }
        EligibleAgents::Labelled(label) => {
            let has_it = known.iter().any(|agent| agent.labels.contains(label));
            let how = if has_it { "none of them is connected" } else { "there is no such agent" };
            return WaitReason::without_agents(WaitCode::Away, format!("it requires the label {label}, and {how}"));
        }
        EligibleAgents::Any | EligibleAgents::OneOf(_) => {
            return WaitReason::without_agents(WaitCode::Away, "no agent is connected");
        }
    };
    match known.iter().find(|agent| agent.name == *name).map(Agent::state) {
        None => WaitReason::without_agents(WaitCode::Away, format!("it requires agent {name}, which no longer exists")),
        Some("disabled") => {
            WaitReason::without_agents(WaitCode::Disabled, format!("it requires agent {name}, which is disabled"))
        }
        Some("revoked") => {
            WaitReason::without_agents(WaitCode::Away, format!("it requires agent {name}, whose key is revoked"))
        }
        Some(_) => {
            WaitReason::without_agents(WaitCode::Away, format!("it requires agent {name}, which is not connected"))
        }
    }
}

/// Describes why no connected agent can do it, by the agents that come closest.
fn unable(needs: &Needs<'_>, obstacles: &[(&str, &Ineligible)]) -> WaitReason {
    let agents_with = |matches: fn(&Ineligible) -> bool| -> Vec<&str> {
        obstacles.iter().filter(|(_, obstacle)| matches(obstacle)).map(|(name, _)| *name).collect()
    };
    let declined = agents_with(|obstacle| *obstacle == Ineligible::Declined);
    if !declined.is_empty() {
        let sentence =
            format!("{} declined this run; it is offered again when an agent reconnects", declined.join(", "));
        return WaitReason::without_agents(WaitCode::Declined, sentence);
    }
    let script = agents_with(|obstacle| *obstacle == Ineligible::Unfit(Unfit::Script));
    if !script.is_empty() {
        let sentence = format!(
            "its scenario is not bundled, and {} bundled scenarios only: start an agent with --any-scenario",
            runs(&script)
        );
        return WaitReason::without_agents(WaitCode::ScriptNotTaken, sentence);
    }
    let no_load = obstacles.iter().find_map(|(name, obstacle)| match obstacle {
        Ineligible::Unfit(Unfit::NoLoad(how) | Unfit::NoDuet(how)) => Some(format!("{name} {how}")),
        Ineligible::Unfit(Unfit::NoReplicas) => Some(format!("{name} {NO_REPLICAS}")),
        Ineligible::Unfit(Unfit::NoCluster(how) | Unfit::NoEngine(how)) => Some(format!("{name} {how}")),
        _ => None,
    });
    if let Some(sentence) = no_load {
        return WaitReason::without_agents(WaitCode::NoLoadAddress, sentence);
    }
    let no_profile = obstacles.iter().find_map(|(name, obstacle)| match obstacle {
        Ineligible::Unfit(Unfit::NoProfile(why)) => Some(format!("{name} can't profile {}: {why}", needs.spec.target)),
        _ => None,
    });
    if let Some(sentence) = no_profile {
        return WaitReason::without_agents(WaitCode::NoProfiler, sentence);
    }
    let small: Vec<String> = obstacles
        .iter()
        .filter_map(|(name, obstacle)| match obstacle {
            Ineligible::Unfit(Unfit::TooSmall(has)) => Some(format!("{name} {has}")),
            _ => None,
        })
        .collect();
    if !small.is_empty() {
        let RunSpec { target, size, .. } = needs.spec;
        let size = size.as_ref().map_or("its size", |size| &size.name);
        let sentence = format!("no agent that offers {target} can provide {size}: {}", small.join(", "));
        return WaitReason::without_agents(WaitCode::DoesNotFit, sentence);
    }
    let subject = match (needs.agent, needs.label) {
        (Some(name), _) => format!("{name} does not offer"),
        (None, Some(label)) => format!("no connected agent labelled {label} offers"),
        (None, None) => "no connected agent offers".to_owned(),
    };
    WaitReason::without_agents(WaitCode::NotOffered, format!("{subject} {}", needs.spec.target))
}

/// Describes an agent with a fault; the end of a sentence about it.
fn takes_none(fault: &str) -> String {
    format!("takes no runs: {fault}")
}

/// Formats `a is`, `a and b are` or `a, b and c are`.
fn are(names: &[&str]) -> String {
    format!("{} {}", listed(names), if names.len() == 1 { "is" } else { "are" })
}

fn runs(names: &[&str]) -> String {
    format!("{} {}", listed(names), if names.len() == 1 { "runs" } else { "run" })
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::queue::list::fixtures::{agent, needs, spec, working};

    fn describe(needs: &Needs<'_>, connected: &[(String, Connected)]) -> (WaitCode, String) {
        let eligible = needs.agent.map_or(EligibleAgents::Any, |name| EligibleAgents::Only(name.to_owned()));
        let wait = wait_reason(needs, &eligible, connected, &[]);
        (wait.reason, wait.sentence)
    }

    #[test]
    fn the_reason_names_the_obstacle_of_the_closest_agents() {
        let small = agent("small", |agent| Arc::make_mut(&mut agent.hello).machine.cores = 1);
        let poor = agent("poor", |agent| Arc::make_mut(&mut agent.hello).targets.clear());
        let (reason, sentence) = describe(&needs("fast"), std::slice::from_ref(&poor));
        assert_eq!((reason, sentence.as_str()), (WaitCode::NotOffered, "no connected agent offers fast"));
        let (reason, sentence) = describe(&needs("fast"), &[poor.clone(), small.clone()]);
        assert_eq!(reason, WaitCode::DoesNotFit);
        assert_eq!(sentence, "no agent that offers fast can provide 2/4GiB: small has 1 core");
        let of_user = RunSpec { scenario_sha256: Some("00aa".to_owned()), ..spec("fast") };
        let foreign = Needs { spec: &of_user, ..needs("fast") };
        assert_eq!(describe(&foreign, &[agent("rack", |_| ()), small]).0, WaitCode::ScriptNotTaken);
        let unwilling = agent("rack", |agent| {
            agent.declined.extend(needs("fast").run);
        });
        assert_eq!(describe(&needs("fast"), &[poor, unwilling]).0, WaitCode::Declined);
    }

    #[test]
    fn able_agents_are_listed_with_what_they_wait_for() {
        let (rack, busy) = (agent("rack", |_| ()), agent("busy", working));
        let drained = agent("tired", |agent| agent.availability = Availability::Drained);
        assert_eq!(describe(&needs("fast"), &[busy.clone(), rack]).0, WaitCode::Soon);
        let wait = wait_reason(&needs("fast"), &EligibleAgents::Any, &[busy.clone(), drained.clone()], &[]);
        assert_eq!((wait.reason, wait.agents), (WaitCode::Busy, vec!["busy".to_owned()]));
        let (reason, sentence) = describe(&needs("fast"), &[drained]);
        assert_eq!((reason, sentence.as_str()), (WaitCode::Drained, "tired is drained"));
        let full = agent("full", |agent| agent.fault = Some("the disk is full".to_owned()));
        let (reason, sentence) = describe(&needs("fast"), std::slice::from_ref(&full));
        assert_eq!((reason, sentence.as_str()), (WaitCode::Faulty, "full takes no runs: the disk is full"));
        assert_eq!(describe(&needs("fast"), &[full, busy.clone()]).0, WaitCode::Busy);
        let only = Needs { agent: Some("rack"), ..needs("fast") };
        let (reason, sentence) = describe(&only, std::slice::from_ref(&busy));
        assert_eq!(reason, WaitCode::Away);
        assert!(sentence.contains("rack, which no longer exists"), "{sentence}");
        let home = EligibleAgents::Home("rack".to_owned());
        let wait = wait_reason(&needs("fast"), &home, std::slice::from_ref(&busy), &[]);
        assert!(wait.sentence.starts_with("its experiment is measured on rack, which is not connected"), "{wait:?}");
        let wait = wait_reason(&Needs { block: 2, ..needs("fast") }, &home, &[busy], &[]);
        assert!(wait.sentence.starts_with("its repetition is measured on rack, which is not connected"), "{wait:?}");
    }

    #[test]
    fn only_agents_with_the_requested_label_are_considered() {
        let (eligible, needs) =
            (EligibleAgents::Labelled("arm".to_owned()), Needs { label: Some("arm"), ..needs("fast") });
        let plain = agent("plain", |_| ());
        let wait = wait_reason(&needs, &eligible, std::slice::from_ref(&plain), &[]);
        let expected = "it requires the label arm, and there is no such agent";
        assert_eq!((wait.reason, wait.sentence.as_str()), (WaitCode::Away, expected));
        let arm = |agent: &mut Connected| agent.labels = ["arm".to_owned()].into();
        let poor = agent("poor", |agent| {
            arm(agent);
            Arc::make_mut(&mut agent.hello).targets.clear();
        });
        let wait = wait_reason(&needs, &eligible, &[plain.clone(), poor], &[]);
        assert_eq!(wait.sentence, "no connected agent labelled arm offers fast");
        let wait = wait_reason(&needs, &eligible, &[plain, agent("rack", arm)], &[]);
        assert_eq!((wait.reason, wait.agents), (WaitCode::Soon, vec!["rack".to_owned()]));
    }

    #[test]
    fn a_distributed_run_needs_a_host_that_accepts_load_and_all_generators() {
        let (generators, scenario_sha256) = (vec!["one".to_owned(), "two".to_owned()], Some("00aa".to_owned()));
        let spec = RunSpec { generators, scenario_sha256, ..spec("fast") };
        let needs = Needs { spec: &spec, ..needs("fast") };
        let open = |agent: &mut Connected| Arc::make_mut(&mut agent.hello).load_address = Some([10, 0, 0, 5].into());
        let willing = |agent: &mut Connected| Arc::make_mut(&mut agent.hello).any_scenario = true;
        let describe = |connected: &[(String, Connected)]| {
            let wait = wait_reason(&needs, &EligibleAgents::Any, connected, &[]);
            (wait.reason, wait.sentence)
        };
        let all = [agent("rack", |_| ()), agent("one", willing), agent("two", willing)];
        let (reason, sentence) = describe(&all);
        assert_eq!(reason, WaitCode::NoLoadAddress);
        assert!(sentence.contains("--load-address"), "{sentence}");
        let fixed = agent("rack", |agent| {
            open(agent);
            Arc::make_mut(&mut agent.hello).targets[0].anywhere = false;
        });
        assert!(describe(&[fixed, all[1].clone(), all[2].clone()]).1.contains("{host}"));
        let rack = agent("rack", open);
        assert_eq!(describe(&[rack.clone(), all[1].clone(), all[2].clone()]).0, WaitCode::Soon);
        let away = describe(&[rack.clone(), all[1].clone()]);
        assert_eq!(away, (WaitCode::Away, "its load generator two is not connected".to_owned()));
        let unwilling = agent("two", |_| ());
        assert_eq!(describe(&[rack.clone(), all[1].clone(), unwilling.clone()]).0, WaitCode::ScriptNotTaken);
        let busy = agent("one", |agent| {
            willing(agent);
            working(agent);
        });
        assert_eq!(describe(&[rack.clone(), busy.clone(), all[2].clone()]).0, WaitCode::Busy);
        assert_eq!(describe(&[rack, busy, unwilling]).0, WaitCode::ScriptNotTaken, "what needs action comes first");
    }

    #[test]
    fn names_are_listed_with_and_before_the_last() {
        assert_eq!(are(&["a"]), "a is");
        assert_eq!(are(&["a", "b", "c"]), "a, b and c are");
    }
}
