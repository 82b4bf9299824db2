//! For whom a run waits, and why. What is told here is what the assignment goes by. Pure.

use std::{collections::BTreeSet, sync::Arc};

use brewbench_agent::wire;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    fleet::{
        model::{Agent, Standing},
        presence::Connected,
    },
    placement::feasibility::{Demand, Source, Unfit, lacks_script, unfit},
};

/// What a run needs of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    /// The run.
    pub run: wire::RunId,
    /// The target's name.
    pub target: &'a str,
    /// The machine size's name.
    pub size: &'a str,
    /// Cores.
    pub vcpus: f64,
    /// Memory.
    pub memory_bytes: u64,
    /// Where the scenario comes from.
    pub source: Source,
    /// Only this agent, if it was said so.
    pub agent: Option<&'a str>,
    /// Only agents with this label, if it was said so.
    pub label: Option<&'a str>,
    /// The runs of its experiment that stay on one machine have the same: 0 for all of them, else the repetition.
    pub block: i64,
    /// The agents that make the load; empty where the target's own does.
    pub generators: &'a [String],
}

impl Needs<'_> {
    /// What the run demands of the agent that runs its target.
    pub fn demand(&self) -> Demand<'_> {
        let Self { target, vcpus, memory_bytes, source, generators, .. } = *self;
        Demand { target, vcpus, memory_bytes, source, has_generators: !generators.is_empty() }
    }
}

/// Where a run may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// By anybody who can.
    Anywhere,
    /// By anybody who can and has this label now.
    Labelled(String),
    /// By the agent that it was submitted for.
    Only(String),
    /// By the agent that its block has begun on: its experiment, or where that is spread over several, its repetition.
    /// Labels don't matter any more.
    Home(String),
    /// By one of those that can do its whole experiment, and have its label if it asks for one.
    OneOf(Arc<BTreeSet<String>>),
}

impl At {
    fn admits(&self, name: &str, agent: &Connected) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Labelled(label) => agent.has_label(label),
            Self::Only(only) | Self::Home(only) => only == name,
            Self::OneOf(names) => names.contains(name),
        }
    }
}

/// Why an agent can't do a run, whatever else it has to do. Each comes before those that follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It is to be done by another one.
    NotWanted,
    /// It can't, as long as it is what it is.
    Unfit(Unfit),
    /// It would not take this run while it is connected.
    Declined,
}

/// Why an agent can't do a run; nothing if it can.
pub fn lack(needs: &Needs<'_>, at: &At, name: &str, agent: &Connected) -> Option<Lack> {
    // Who makes the load does not run the target, or both would share its cores.
    if !at.admits(name, agent) || needs.generators.iter().any(|generator| generator == name) {
        return Some(Lack::NotWanted);
    }
    let declined = || agent.declined.contains(&needs.run).then_some(Lack::Declined);
    unfit(needs.demand(), agent).map(Lack::Unfit).or_else(declined)
}

/// What keeps those who are to make a run's load, if anything does; the worst first.
pub fn generators_lack(needs: &Needs<'_>, connected: &[(String, Connected)], known: &[Agent]) -> Option<Why> {
    let whys = needs.generators.iter().filter_map(|name| {
        let agent = connected.iter().find(|(connected, _)| connected == name).map(|(_, agent)| agent);
        let Some(agent) = agent else {
            let is_disabled = known.iter().any(|agent| agent.name == *name && agent.state() == "disabled");
            let (reason, how) =
                if is_disabled { (Reason::Disabled, "disabled") } else { (Reason::Away, "not connected") };
            return Some(Why::nobody(reason, format!("its load comes from {name}, which is {how}")));
        };
        let (reason, how) = generator_lack(needs, agent)?;
        Some(Why::nobody(reason, format!("its load comes from {name}, which {how}")))
    });
    // What passes by itself is told last.
    whys.min_by_key(|why| matches!(why.reason, Reason::Busy))
}

/// Why an agent that is there does not make load for a run now.
fn generator_lack(needs: &Needs<'_>, agent: &Connected) -> Option<(Reason, &'static str)> {
    if lacks_script(needs.source, agent) {
        let why = "runs only scenarios that came with it: start it with --any-scenario";
        return Some((Reason::ScriptNotTaken, why));
    }
    if agent.declined.contains(&needs.run) {
        return Some((Reason::Declined, "would not take it; it is asked again when it connects anew"));
    }
    if agent.standing != Standing::Enabled {
        return Some((Reason::Drained, "is drained"));
    }
    (!agent.is_free()).then_some((Reason::Busy, "is busy"))
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its experiment is paused.
    Paused,
    /// The agent that is to do it is not there, or no agent is.
    Away,
    /// The agent that is to do it is disabled.
    Disabled,
    /// Nobody who is connected offers the target.
    NotOffered,
    /// Nobody who offers the target can give the machine size.
    DoesNotFit,
    /// Nobody who could do it lets load come from other agents.
    NoLoadAddress,
    /// Nobody who could do it runs scripts of users.
    ScriptNotTaken,
    /// All who could do it would not take it.
    Declined,
    /// All who could do it are drained.
    Drained,
    /// All who could do it have something to do.
    Busy,
    /// Nothing: it is about to be given to somebody.
    Soon,
}

/// For whom a run waits, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// In a word.
    pub reason: Reason,
    /// In a sentence.
    pub sentence: String,
    /// Who can do it and takes runs.
    pub agents: Vec<String>,
}

impl Why {
    fn nobody(reason: Reason, sentence: impl Into<String>) -> Self {
        Self { reason, sentence: sentence.into(), agents: Vec::new() }
    }
}

/// Why a run waits whose experiment is paused.
pub fn paused(by: Option<&str>) -> Why {
    let by = by.map_or(String::new(), |by| format!(" by {by}"));
    Why::nobody(Reason::Paused, format!("its experiment is paused{by}"))
}

/// Why a run waits, of which nobody has said that it shall.
pub fn why(needs: &Needs<'_>, at: &At, connected: &[(String, Connected)], known: &[Agent]) -> Why {
    let candidates: Vec<_> = connected.iter().filter(|(name, agent)| at.admits(name, agent)).collect();
    if candidates.is_empty() {
        return absent(needs, at, known);
    }
    let lacks: Vec<_> = candidates.iter().map(|(name, agent)| (name, agent, lack(needs, at, name, agent))).collect();
    let able: Vec<_> = lacks.iter().filter(|(.., lack)| lack.is_none()).collect();
    if able.is_empty() {
        let told: Vec<(&str, &Lack)> =
            lacks.iter().filter_map(|(name, _, lack)| Some((name.as_str(), lack.as_ref()?))).collect();
        return unable(needs, &told);
    }
    let taking: Vec<_> = able.iter().filter(|(_, agent, _)| agent.standing == Standing::Enabled).collect();
    let agents: Vec<String> = taking.iter().map(|(name, ..)| (*name).clone()).collect();
    if agents.is_empty() {
        let names: Vec<&str> = able.iter().map(|(name, ..)| name.as_str()).collect();
        return Why::nobody(Reason::Drained, format!("{} drained", are(&names)));
    }
    let generators = generators_lack(needs, connected, known);
    if let Some(why) = generators.as_ref().filter(|why| why.reason != Reason::Busy) {
        return why.clone();
    }
    if taking.iter().any(|(_, agent, _)| agent.is_free()) {
        if let Some(why) = generators {
            return Why { agents, ..why };
        }
        return Why { reason: Reason::Soon, sentence: "it is about to begin".to_owned(), agents };
    }
    let names: Vec<&str> = agents.iter().map(String::as_str).collect();
    Why { reason: Reason::Busy, sentence: format!("{} busy", are(&names)), agents }
}

/// Nobody is there who may do it.
fn absent(needs: &Needs<'_>, at: &At, known: &[Agent]) -> Why {
    let name = match at {
        At::Only(name) => name,
        At::Home(name) => {
            let what = if needs.block > 0 { "repetition" } else { "experiment" };
            let sentence = format!(
                "its {what} is measured on {name}, which is not connected; if that is disabled or forgotten, another agent \
                 goes on"
            );
            return Why::nobody(Reason::Away, sentence);
        }
        At::Labelled(label) => {
            let has_it = known.iter().any(|agent| agent.labels.contains(label));
            let how = if has_it { "none of these is connected" } else { "there is none any more" };
            return Why::nobody(Reason::Away, format!("it is for agents labelled {label}, and {how}"));
        }
        At::Anywhere | At::OneOf(_) => return Why::nobody(Reason::Away, "no agent is connected"),
    };
    match known.iter().find(|agent| agent.name == *name).map(Agent::state) {
        None => Why::nobody(Reason::Away, format!("it is for {name}, and there is no such agent any more")),
        Some("disabled") => Why::nobody(Reason::Disabled, format!("it is for {name}, which is disabled")),
        Some("revoked") => Why::nobody(Reason::Away, format!("it is for {name}, whose key is revoked")),
        Some(_) => Why::nobody(Reason::Away, format!("it is for {name}, which is not connected")),
    }
}

/// Nobody who is there can do it: what those lack who come nearest to it.
fn unable(needs: &Needs<'_>, lacks: &[(&str, &Lack)]) -> Why {
    let of = |wanted: fn(&Lack) -> bool| -> Vec<&str> {
        lacks.iter().filter(|(_, lack)| wanted(lack)).map(|(name, _)| *name).collect()
    };
    let declined = of(|lack| *lack == Lack::Declined);
    if !declined.is_empty() {
        let sentence = format!("{} would not take it; it is asked again when it connects anew", declined.join(", "));
        return Why::nobody(Reason::Declined, sentence);
    }
    let script = of(|lack| *lack == Lack::Unfit(Unfit::Script));
    if !script.is_empty() {
        let sentence = format!(
            "its scenario did not come with brewbench, and {} only such: start one with --any-scenario",
            runs(&script)
        );
        return Why::nobody(Reason::ScriptNotTaken, sentence);
    }
    let loadless = lacks.iter().find_map(|(name, lack)| match lack {
        Lack::Unfit(Unfit::NoLoad(how)) => Some(format!("{name} {how}")),
        _ => None,
    });
    if let Some(sentence) = loadless {
        return Why::nobody(Reason::NoLoadAddress, sentence);
    }
    let small: Vec<String> = lacks
        .iter()
        .filter_map(|(name, lack)| match lack {
            Lack::Unfit(Unfit::TooSmall(has)) => Some(format!("{name} {has}")),
            _ => None,
        })
        .collect();
    if !small.is_empty() {
        let sentence = format!("nobody with {} can give {}: {}", needs.target, needs.size, small.join(", "));
        return Why::nobody(Reason::DoesNotFit, sentence);
    }
    let who = match (needs.agent, needs.label) {
        (Some(name), _) => format!("{name} does not offer"),
        (None, Some(label)) => format!("no connected agent labelled {label} offers"),
        (None, None) => "no connected agent offers".to_owned(),
    };
    Why::nobody(Reason::NotOffered, format!("{who} {}", needs.target))
}

/// `a is`, `a and b are`, `a, b and c are`.
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
    use crate::dispatch::queue::list::made_up::{agent, needs, working};

    fn told(needs: &Needs<'_>, connected: &[(String, Connected)]) -> (Reason, String) {
        let at = needs.agent.map_or(At::Anywhere, |name| At::Only(name.to_owned()));
        let why = why(needs, &at, connected, &[]);
        (why.reason, why.sentence)
    }

    #[test]
    fn the_reason_names_what_those_lack_who_come_nearest() {
        let small = agent("small", |agent| Arc::make_mut(&mut agent.hello).machine.cores = 1);
        let poor = agent("poor", |agent| Arc::make_mut(&mut agent.hello).targets.clear());
        let (reason, sentence) = told(&needs("fast"), std::slice::from_ref(&poor));
        assert_eq!((reason, sentence.as_str()), (Reason::NotOffered, "no connected agent offers fast"));
        let (reason, sentence) = told(&needs("fast"), &[poor.clone(), small.clone()]);
        assert_eq!(reason, Reason::DoesNotFit);
        assert_eq!(sentence, "nobody with fast can give 2/4GiB: small has 1 cores");
        let foreign = Needs { source: Source::User, ..needs("fast") };
        assert_eq!(told(&foreign, &[agent("rack", |_| ()), small]).0, Reason::ScriptNotTaken);
        let unwilling = agent("rack", |agent| {
            agent.declined.insert(needs("fast").run);
        });
        assert_eq!(told(&needs("fast"), &[poor, unwilling]).0, Reason::Declined);
    }

    #[test]
    fn who_can_do_it_is_named_and_what_keeps_them() {
        let (rack, busy) = (agent("rack", |_| ()), agent("busy", working));
        let drained = agent("tired", |agent| agent.standing = Standing::Drained);
        assert_eq!(told(&needs("fast"), &[busy.clone(), rack]).0, Reason::Soon);
        let why = why(&needs("fast"), &At::Anywhere, &[busy.clone(), drained.clone()], &[]);
        assert_eq!((why.reason, why.agents), (Reason::Busy, vec!["busy".to_owned()]));
        let (reason, sentence) = told(&needs("fast"), &[drained]);
        assert_eq!((reason, sentence.as_str()), (Reason::Drained, "tired is drained"));
        let only = Needs { agent: Some("rack"), ..needs("fast") };
        let (reason, sentence) = told(&only, std::slice::from_ref(&busy));
        assert_eq!(reason, Reason::Away);
        assert!(sentence.contains("there is no such agent any more"), "{sentence}");
        let home = At::Home("rack".to_owned());
        let why = super::why(&needs("fast"), &home, std::slice::from_ref(&busy), &[]);
        assert!(why.sentence.starts_with("its experiment is measured on rack, which is not connected"), "{why:?}");
        let why = super::why(&Needs { block: 2, ..needs("fast") }, &home, &[busy], &[]);
        assert!(why.sentence.starts_with("its repetition is measured on rack, which is not connected"), "{why:?}");
    }

    #[test]
    fn only_those_with_a_label_are_looked_at_where_one_is_asked_for() {
        let (at, needs) = (At::Labelled("arm".to_owned()), Needs { label: Some("arm"), ..needs("fast") });
        let plain = agent("plain", |_| ());
        let told = why(&needs, &at, std::slice::from_ref(&plain), &[]);
        let expected = "it is for agents labelled arm, and there is none any more";
        assert_eq!((told.reason, told.sentence.as_str()), (Reason::Away, expected));
        let arm = |agent: &mut Connected| agent.labels = ["arm".to_owned()].into();
        let poor = agent("poor", |agent| {
            arm(agent);
            Arc::make_mut(&mut agent.hello).targets.clear();
        });
        let told = why(&needs, &at, &[plain.clone(), poor], &[]);
        assert_eq!(told.sentence, "no connected agent labelled arm offers fast");
        let told = why(&needs, &at, &[plain, agent("rack", arm)], &[]);
        assert_eq!((told.reason, told.agents), (Reason::Soon, vec!["rack".to_owned()]));
    }

    #[test]
    fn load_from_others_needs_a_host_that_takes_it_and_all_who_make_it() {
        let generators = ["one".to_owned(), "two".to_owned()];
        let needs = Needs { generators: &generators, source: Source::User, ..needs("fast") };
        let open = |agent: &mut Connected| Arc::make_mut(&mut agent.hello).load_address = Some([10, 0, 0, 5].into());
        let willing = |agent: &mut Connected| Arc::make_mut(&mut agent.hello).any_scenario = true;
        let told = |crew: &[(String, Connected)]| {
            let why = why(&needs, &At::Anywhere, crew, &[]);
            (why.reason, why.sentence)
        };
        let all = [agent("rack", |_| ()), agent("one", willing), agent("two", willing)];
        let (reason, sentence) = told(&all);
        assert_eq!(reason, Reason::NoLoadAddress);
        assert!(sentence.contains("--load-address"), "{sentence}");
        let fixed = agent("rack", |agent| {
            open(agent);
            Arc::make_mut(&mut agent.hello).targets[0].anywhere = false;
        });
        assert!(told(&[fixed, all[1].clone(), all[2].clone()]).1.contains("{host}"));
        let rack = agent("rack", open);
        assert_eq!(told(&[rack.clone(), all[1].clone(), all[2].clone()]).0, Reason::Soon);
        let away = told(&[rack.clone(), all[1].clone()]);
        assert_eq!(away, (Reason::Away, "its load comes from two, which is not connected".to_owned()));
        let unwilling = agent("two", |_| ());
        assert_eq!(told(&[rack.clone(), all[1].clone(), unwilling.clone()]).0, Reason::ScriptNotTaken);
        let busy = agent("one", |agent| {
            willing(agent);
            working(agent);
        });
        assert_eq!(told(&[rack.clone(), busy.clone(), all[2].clone()]).0, Reason::Busy);
        assert_eq!(told(&[rack, busy, unwilling]).0, Reason::ScriptNotTaken, "what does not pass by itself");
    }

    #[test]
    fn names_are_listed_as_people_do() {
        assert_eq!(are(&["a"]), "a is");
        assert_eq!(are(&["a", "b", "c"]), "a, b and c are");
    }
}
