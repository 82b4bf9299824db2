//! Keeps the runs of an experiment on one machine, because cells measured on different machines are not comparable.
//! Pure.
//!
//! An experiment starts on an agent that can do all of its runs, if one is connected. It stays on that agent until the
//! agent is disabled or removed. Runs that this agent can't do may go to others: no agent could have done them all.
//!
//! An experiment that may be spread over several machines is assigned in blocks. Each repetition of all cells starts on
//! an agent that can do all of it, and stays there, so every machine measures every cell equally often. A retry belongs
//! to the block of the run that it replaces. Two blocks cancel drift ([`crate::experiments::order`]) only if they run
//! on the same machine.
//!
//! If an experiment requires a label, any agent that has the label now may start it. The experiment stays there even if
//! the agent loses the label: half an experiment on another machine would be worthless.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    app::ids::ExperimentId,
    fleet::{model::Availability, presence::Connected},
    placement::{feasibility::Needs, offer::unfit, wait_reason::EligibleAgents},
};

/// The agents that can do all runs of each experiment, and where its blocks have just started.
#[derive(Debug, Default)]
pub struct Affinity {
    able: HashMap<ExperimentId, Arc<BTreeSet<String>>>,
    started: HashMap<(ExperimentId, i64), String>,
}

impl Affinity {
    /// Computes the affinity of waiting runs, each given with its experiment.
    pub fn new<'a>(
        waiting: impl Iterator<Item = (Option<&'a ExperimentId>, Needs<'a>)>,
        connected: &[(String, Connected)],
    ) -> Self {
        let taking: Vec<_> =
            connected.iter().filter(|(_, agent)| agent.availability == Availability::Enabled).collect();
        let mut cells: HashMap<&ExperimentId, Vec<Needs<'a>>> = HashMap::new();
        let mut seen = HashSet::new();
        for (experiment, needs) in waiting {
            let Some(experiment) = experiment else { continue };
            // All repetitions of a cell need the same.
            if seen.insert((experiment, &needs.spec.target, needs.spec.size.as_ref().map(|size| &size.name))) {
                cells.entry(experiment).or_default().push(needs);
            }
        }
        // An agent that can do the only cell of an experiment can do all of it: no need to list those.
        let able = cells.into_iter().filter(|(_, cells)| cells.len() > 1).map(|(experiment, cells)| {
            let may_start = |needs: &Needs<'_>, agent: &Connected| {
                unfit(needs.spec, &agent.hello).is_none() && needs.label.is_none_or(|label| agent.has_label(label))
            };
            let can = |agent: &Connected| cells.iter().all(|needs| may_start(needs, agent));
            let able = taking.iter().filter(|(_, agent)| can(agent)).map(|(name, _)| name.clone());
            (experiment.clone(), Arc::new(able.collect()))
        });
        Self { able: able.collect(), started: HashMap::new() }
    }

    /// Records that a run of an experiment was assigned to an agent.
    pub fn record_start(&mut self, needs: &Needs<'_>, experiment: Option<&ExperimentId>, agent: &str) {
        if let Some(experiment) = experiment {
            self.started.entry((experiment.clone(), needs.block)).or_insert_with(|| agent.to_owned());
        }
    }

    /// Returns the agents that may do a run. `home` is the agent on which its block started, if it has.
    pub fn eligible(
        &self,
        needs: &Needs<'_>,
        experiment: Option<&ExperimentId>,
        home: Option<&str>,
        connected: &[(String, Connected)],
    ) -> EligibleAgents {
        if let Some(name) = needs.agent {
            return EligibleAgents::Only(name.to_owned());
        }
        let any = needs.label.map_or(EligibleAgents::Any, |label| EligibleAgents::Labelled(label.to_owned()));
        let Some(experiment) = experiment else { return any };
        let just_started = || self.started.get(&(experiment.clone(), needs.block)).map(String::as_str);
        if let Some(home) = home.or_else(just_started) {
            let agent = connected.iter().find(|(name, _)| name == home);
            let is_unable = agent.is_some_and(|(_, agent)| unfit(needs.spec, &agent.hello).is_some());
            return if is_unable { any } else { EligibleAgents::Home(home.to_owned()) };
        }
        match self.able.get(experiment) {
            Some(able) if !able.is_empty() => EligibleAgents::OneOf(Arc::clone(able)),
            _ => any,
        }
    }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::messages::TargetOffer;

    use super::*;
    use crate::dispatch::queue::list::fixtures::{agent, needs};

    fn night() -> ExperimentId {
        "night".to_owned().into()
    }

    fn one_of(name: &str) -> EligibleAgents {
        EligibleAgents::OneOf(Arc::new(BTreeSet::from([name.to_owned()])))
    }

    #[test]
    fn an_experiment_starts_on_an_agent_that_can_do_all_of_it_and_stays_there() {
        let night = night();
        let both = agent("both", |agent| {
            let hello = Arc::make_mut(&mut agent.hello);
            let mut slow = hello.targets[0].clone();
            slow.name = "slow".to_owned();
            hello.targets.push(slow);
        });
        let connected = [agent("fast-only", |_| ()), both];
        let waiting = [needs("fast"), needs("slow")];
        let mut affinity = Affinity::new(waiting.iter().map(|needs| (Some(&night), *needs)), &connected);
        let eligible = |affinity: &Affinity, target| affinity.eligible(&needs(target), Some(&night), None, &connected);
        assert_eq!(eligible(&affinity, "fast"), one_of("both"));
        affinity.record_start(&needs("fast"), Some(&night), "both");
        affinity.record_start(&needs("fast"), Some(&night), "fast-only");
        assert_eq!(eligible(&affinity, "slow"), EligibleAgents::Home("both".to_owned()));
        assert_eq!(
            affinity.eligible(&needs("fast"), Some(&night), Some("away"), &connected),
            EligibleAgents::Home("away".to_owned())
        );
        assert_eq!(affinity.eligible(&needs("fast"), None, None, &connected), EligibleAgents::Any);
        let only = Needs { agent: Some("fast-only"), ..needs("fast") };
        assert_eq!(
            affinity.eligible(&only, Some(&night), None, &connected),
            EligibleAgents::Only("fast-only".to_owned())
        );
    }

    #[test]
    fn each_repetition_of_a_spread_experiment_stays_where_it_started() {
        let night = night();
        let connected = [agent("one", |_| ()), agent("two", |_| ())];
        let in_block = |block| Needs { block, ..needs("fast") };
        let waiting = [in_block(1), in_block(2)];
        let mut affinity = Affinity::new(waiting.iter().map(|needs| (Some(&night), *needs)), &connected);
        let eligible =
            |affinity: &Affinity, block, home| affinity.eligible(&in_block(block), Some(&night), home, &connected);
        affinity.record_start(&in_block(1), Some(&night), "one");
        assert_eq!(eligible(&affinity, 1, None), EligibleAgents::Home("one".to_owned()));
        assert_eq!(eligible(&affinity, 2, None), EligibleAgents::Any, "a single cell: any agent that can do it");
        affinity.record_start(&in_block(2), Some(&night), "two");
        assert_eq!(eligible(&affinity, 2, None), EligibleAgents::Home("two".to_owned()));
        assert_eq!(eligible(&affinity, 3, Some("one")), EligibleAgents::Home("one".to_owned()));
    }

    #[test]
    fn agents_with_the_label_may_start_an_experiment_and_it_stays_there() {
        let night = night();
        let labelled = |target| Needs { label: Some("arm"), ..needs(target) };
        let offers_both = |agent: &mut Connected| {
            let hello = Arc::make_mut(&mut agent.hello);
            hello.targets.push(TargetOffer { name: "slow".to_owned(), ..hello.targets[0].clone() });
        };
        let arm = |agent: &mut Connected| {
            offers_both(agent);
            agent.labels = ["arm".to_owned()].into();
        };
        let connected = [agent("arm", arm), agent("other", offers_both)];
        let waiting = [labelled("fast"), labelled("slow")];
        let affinity = Affinity::new(waiting.iter().map(|needs| (Some(&night), *needs)), &connected);
        assert_eq!(affinity.eligible(&labelled("fast"), Some(&night), None, &connected), one_of("arm"));
        assert_eq!(
            affinity.eligible(&labelled("fast"), Some(&night), Some("other"), &connected),
            EligibleAgents::Home("other".to_owned())
        );
        assert_eq!(
            affinity.eligible(&labelled("fast"), None, None, &connected),
            EligibleAgents::Labelled("arm".to_owned())
        );
        let small = [agent("other", |_| ())];
        let elsewhere = affinity.eligible(&labelled("slow"), Some(&night), Some("other"), &small);
        assert_eq!(elsewhere, EligibleAgents::Labelled("arm".to_owned()), "its home agent does not offer it");
    }

    #[test]
    fn any_able_agent_is_eligible_if_none_can_do_the_whole_experiment() {
        let night = night();
        let connected =
            [agent("fast-only", |_| ()), agent("tired", |agent| agent.availability = Availability::Drained)];
        let waiting = [needs("fast"), needs("slow")];
        let affinity = Affinity::new(waiting.iter().map(|needs| (Some(&night), *needs)), &connected);
        assert_eq!(affinity.eligible(&needs("fast"), Some(&night), None, &connected), EligibleAgents::Any);
        let slow = affinity.eligible(&needs("slow"), Some(&night), Some("fast-only"), &connected);
        assert_eq!(slow, EligibleAgents::Any, "its home agent does not offer it");
    }
}
