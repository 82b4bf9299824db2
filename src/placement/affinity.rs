//! Where the runs of an experiment are done: all of them on one machine, or its cells could not be compared. Pure.
//!
//! An experiment begins on an agent that can do all of it, if there is one, and stays on the agent that it began on, until
//! that is disabled or forgotten. What that agent can't do, others may: nobody could have done it all.
//!
//! One that may be spread over several machines is dealt out in blocks: each repetition of all its cells begins where all
//! of it can be done, and stays there, so every machine measures every cell as often. A run that is done again belongs to
//! the repetition that it stands for. That two blocks together cancel drift ([`crate::experiments::order`]) holds for those
//! of them that the same machine does.
//!
//! Where an experiment asks for agents with a label, those that have it now may begin it. It stays where it has begun, even
//! if the label is taken from that agent meanwhile: half of it on another machine would be worth nothing.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    app::ids::ExperimentId,
    fleet::{model::Standing, presence::Connected},
    placement::{
        feasibility::unfit,
        wait_reason::{At, Needs},
    },
};

/// Which agents can do the whole of an experiment, and where its blocks have begun meanwhile.
#[derive(Debug, Default)]
pub struct Homes {
    whole: HashMap<ExperimentId, Arc<BTreeSet<String>>>,
    begun: HashMap<(ExperimentId, i64), String>,
}

impl Homes {
    /// Of runs that wait, each with its experiment.
    pub fn of<'a>(
        waiting: impl Iterator<Item = (Option<&'a ExperimentId>, Needs<'a>)>,
        connected: &[(String, Connected)],
    ) -> Self {
        let taking: Vec<_> = connected.iter().filter(|(_, agent)| agent.standing == Standing::Enabled).collect();
        let mut cells: HashMap<&ExperimentId, Vec<Needs<'a>>> = HashMap::new();
        let mut seen = HashSet::new();
        for (experiment, needs) in waiting {
            let Some(experiment) = experiment else { continue };
            // Its repetitions all need the same.
            if seen.insert((experiment, needs.target, needs.size)) {
                cells.entry(experiment).or_default().push(needs);
            }
        }
        // Who can do the only cell of an experiment can do all of it: that need not be said of each of many agents.
        let whole = cells.into_iter().filter(|(_, cells)| cells.len() > 1).map(|(experiment, cells)| {
            let may_begin = |needs: &Needs<'_>, agent: &Connected| {
                unfit(needs.demand(), agent).is_none() && needs.label.is_none_or(|label| agent.has_label(label))
            };
            let can = |agent: &Connected| cells.iter().all(|needs| may_begin(needs, agent));
            let able = taking.iter().filter(|(_, agent)| can(agent)).map(|(name, _)| name.clone());
            (experiment.clone(), Arc::new(able.collect()))
        });
        Self { whole: whole.collect(), begun: HashMap::new() }
    }

    /// A run of an experiment was given to an agent.
    pub fn begin(&mut self, needs: &Needs<'_>, experiment: Option<&ExperimentId>, agent: &str) {
        if let Some(experiment) = experiment {
            self.begun.entry((experiment.clone(), needs.block)).or_insert_with(|| agent.to_owned());
        }
    }

    /// Where a run may be done: of a block that began on `home`, if it has begun.
    pub fn at(
        &self,
        needs: &Needs<'_>,
        experiment: Option<&ExperimentId>,
        home: Option<&str>,
        connected: &[(String, Connected)],
    ) -> At {
        if let Some(name) = needs.agent {
            return At::Only(name.to_owned());
        }
        let anybody = needs.label.map_or(At::Anywhere, |label| At::Labelled(label.to_owned()));
        let Some(experiment) = experiment else { return anybody };
        let begun = || self.begun.get(&(experiment.clone(), needs.block)).map(String::as_str);
        if let Some(home) = home.or_else(begun) {
            let agent = connected.iter().find(|(name, _)| name == home);
            let is_unable = agent.is_some_and(|(_, agent)| unfit(needs.demand(), agent).is_some());
            return if is_unable { anybody } else { At::Home(home.to_owned()) };
        }
        match self.whole.get(experiment) {
            Some(able) if !able.is_empty() => At::OneOf(Arc::clone(able)),
            _ => anybody,
        }
    }
}

#[cfg(test)]
mod tests {
    use brewbench_agent::wire::messages::TargetOffer;

    use super::*;
    use crate::dispatch::queue::list::made_up::{agent, needs};

    fn night() -> ExperimentId {
        "night".to_owned().into()
    }

    fn one_of(name: &str) -> At {
        At::OneOf(Arc::new(BTreeSet::from([name.to_owned()])))
    }

    #[test]
    fn an_experiment_begins_where_all_of_it_can_be_done_and_stays_there() {
        let night = night();
        let both = agent("both", |agent| {
            let hello = Arc::make_mut(&mut agent.hello);
            let mut slow = hello.targets[0].clone();
            slow.name = "slow".to_owned();
            hello.targets.push(slow);
        });
        let connected = [agent("fast-only", |_| ()), both];
        let waiting = [needs("fast"), needs("slow")];
        let mut homes = Homes::of(waiting.iter().map(|needs| (Some(&night), *needs)), &connected);
        let at = |homes: &Homes, target| homes.at(&needs(target), Some(&night), None, &connected);
        assert_eq!(at(&homes, "fast"), one_of("both"));
        homes.begin(&needs("fast"), Some(&night), "both");
        homes.begin(&needs("fast"), Some(&night), "fast-only");
        assert_eq!(at(&homes, "slow"), At::Home("both".to_owned()));
        assert_eq!(homes.at(&needs("fast"), Some(&night), Some("away"), &connected), At::Home("away".to_owned()));
        assert_eq!(homes.at(&needs("fast"), None, None, &connected), At::Anywhere);
        let only = Needs { agent: Some("fast-only"), ..needs("fast") };
        assert_eq!(homes.at(&only, Some(&night), None, &connected), At::Only("fast-only".to_owned()));
    }

    #[test]
    fn of_an_experiment_that_is_spread_each_repetition_stays_where_it_began() {
        let night = night();
        let connected = [agent("one", |_| ()), agent("two", |_| ())];
        let of = |block| Needs { block, ..needs("fast") };
        let mut homes = Homes::of([of(1), of(2)].iter().map(|needs| (Some(&night), *needs)), &connected);
        let at = |homes: &Homes, block, home| homes.at(&of(block), Some(&night), home, &connected);
        homes.begin(&of(1), Some(&night), "one");
        assert_eq!(at(&homes, 1, None), At::Home("one".to_owned()));
        assert_eq!(at(&homes, 2, None), At::Anywhere, "the only cell: whoever can do it");
        homes.begin(&of(2), Some(&night), "two");
        assert_eq!(at(&homes, 2, None), At::Home("two".to_owned()));
        assert_eq!(at(&homes, 3, Some("one")), At::Home("one".to_owned()));
    }

    #[test]
    fn who_has_the_label_now_may_begin_and_where_it_has_begun_it_stays() {
        let night = night();
        let of = |target| Needs { label: Some("arm"), ..needs(target) };
        let offers_both = |agent: &mut Connected| {
            let hello = Arc::make_mut(&mut agent.hello);
            hello.targets.push(TargetOffer { name: "slow".to_owned(), ..hello.targets[0].clone() });
        };
        let arm = |agent: &mut Connected| {
            offers_both(agent);
            agent.labels = ["arm".to_owned()].into();
        };
        let connected = [agent("arm", arm), agent("other", offers_both)];
        let waiting = [of("fast"), of("slow")];
        let homes = Homes::of(waiting.iter().map(|needs| (Some(&night), *needs)), &connected);
        assert_eq!(homes.at(&of("fast"), Some(&night), None, &connected), one_of("arm"));
        assert_eq!(homes.at(&of("fast"), Some(&night), Some("other"), &connected), At::Home("other".to_owned()));
        assert_eq!(homes.at(&of("fast"), None, None, &connected), At::Labelled("arm".to_owned()));
        let small = [agent("other", |_| ())];
        let elsewhere = homes.at(&of("slow"), Some(&night), Some("other"), &small);
        assert_eq!(elsewhere, At::Labelled("arm".to_owned()), "its home does not offer it");
    }

    #[test]
    fn what_nobody_can_do_whole_is_done_by_who_can_do_a_part() {
        let night = night();
        let connected = [agent("fast-only", |_| ()), agent("tired", |agent| agent.standing = Standing::Drained)];
        let waiting = [needs("fast"), needs("slow")];
        let homes = Homes::of(waiting.iter().map(|needs| (Some(&night), *needs)), &connected);
        assert_eq!(homes.at(&needs("fast"), Some(&night), None, &connected), At::Anywhere);
        let slow = homes.at(&needs("slow"), Some(&night), Some("fast-only"), &connected);
        assert_eq!(slow, At::Anywhere, "its home does not offer it");
    }
}
