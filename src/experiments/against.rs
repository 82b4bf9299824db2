//! A baseline that is measured again next to its candidate, in one experiment: what its runs say of the plan, and which
//! agent still offers it. Pure.
//!
//! Runs of two experiments differ by what the days between them did to the machine. Measured in turn, both sides share
//! that, and a difference is one of the programs.

use std::collections::BTreeMap;

use brewbench_agent::wire::load::{Load, Shape};

use crate::{
    catalog::model::{MachineSize, find_size},
    experiments::plan::Plan,
    fleet::presence::Connected,
    runs::{
        load,
        model::{Origin, Run},
    },
    web::format,
};

/// Runs of a baseline that can be measured again.
#[derive(Clone, Debug)]
pub struct Baseline<'a> {
    /// As the plan names it.
    name: &'a str,
    runs: Vec<&'a Run>,
}

/// A plan with what it takes from its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// The baseline's targets and the candidates, the baseline's sizes, scenario, parameters and loads.
    pub plan: Plan,
    /// The baseline's targets.
    pub targets: Vec<Versioned>,
}

/// A target of a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// Its name.
    pub name: String,
    /// Its version; none where its runs don't have any.
    pub version: Option<String>,
}

impl<'a> Baseline<'a> {
    /// Fails if no run says enough: nobody knows the load of an import.
    pub fn new(name: &'a str, runs: &'a [Run]) -> Result<Self, String> {
        let says_enough = |run: &&Run| {
            run.counts()
                && run.origin == Origin::Agent
                && run.size.is_some()
                && run.scenario.is_some()
                && run.load.is_some()
        };
        let runs: Vec<&Run> = runs.iter().filter(says_enough).collect();
        if runs.is_empty() {
            return Err(format!("against: {name:?} has no runs with results that an agent measured"));
        }
        Ok(Self { name, runs })
    }

    /// Takes from the baseline what a plan leaves out. What the plan names narrows the baseline down; it fails where
    /// nothing is left, or where several things are left and an experiment has one.
    pub fn complete(mut self, plan: Plan, known_sizes: &[MachineSize]) -> Result<Completed, String> {
        if plan.knee.is_some() {
            return Err("knee: a baseline is measured again under its own load; leave knee or against out".to_owned());
        }
        let given = Some(plan.scenario).filter(|scenario| !scenario.is_empty());
        let scenario = self.one("scenario", given, |run| run.scenario.clone(), String::clone)?;
        let given = Some(plan.parameters).filter(|parameters| !parameters.is_empty());
        let parameters = self.one("parameters", given, |run| Some(run.parameters.clone()), parameter_words)?;
        let size_name = |run: &Run| Some(known_size(run, known_sizes)?.name.clone());
        let meant = |size: String| find_size(known_sizes, &size).map_or(size, |size| size.name.clone());
        let given = plan.sizes.into_iter().map(meant).collect();
        let sizes = self.several("sizes", given, size_name, String::clone)?;
        let mut loads = self.several("loads", plan.loads, |run| run.load.clone(), load_words)?;
        loads.sort_by_key(|load| load.shape().map(Shape::peak));
        let own = self.targets()?;
        let is_own = |name: &&String| own.iter().any(|target| target.name == **name);
        let candidates = plan.targets.iter().filter(|name| !is_own(name)).cloned();
        let targets = own.iter().map(|target| target.name.clone()).chain(candidates).collect();
        Ok(Completed { plan: Plan { targets, sizes, scenario, parameters, loads, ..plan }, targets: own })
    }

    /// What all runs have in common, or the runs that have what is given.
    fn one<T: PartialEq + Clone>(
        &mut self,
        field: &str,
        given: Option<T>,
        of: impl Fn(&Run) -> Option<T>,
        words: impl Fn(&T) -> String,
    ) -> Result<T, String> {
        let ask = given.is_none();
        let mut chosen = self.several(field, given.into_iter().collect(), of, &words)?;
        if ask && chosen.len() > 1 {
            let known = chosen.iter().map(words).collect::<Vec<_>>().join("; ");
            return Err(format!("{field}: {:?} was measured with {known}: name one of them", self.name));
        }
        chosen.pop().ok_or_else(|| format!("{field}: {:?} does not say", self.name))
    }

    /// All that the runs have, or the runs that have what is given.
    fn several<T: PartialEq>(
        &mut self,
        field: &str,
        given: Vec<T>,
        of: impl Fn(&Run) -> Option<T>,
        words: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, String> {
        let mut known: Vec<T> = Vec::new();
        for value in self.runs.iter().filter_map(|run| of(run)) {
            if !known.contains(&value) {
                known.push(value);
            }
        }
        if let Some(other) = given.iter().find(|value| !known.contains(value)) {
            let known = known.iter().map(&words).collect::<Vec<_>>().join("; ");
            let (name, other) = (self.name, words(other));
            return Err(format!("{field}: {name:?} was measured with {known}, not with {other}"));
        }
        if given.is_empty() {
            return Ok(known);
        }
        self.runs.retain(|run| of(run).is_some_and(|value| given.contains(&value)));
        Ok(given)
    }

    /// Its targets, each in one version.
    fn targets(&self) -> Result<Vec<Versioned>, String> {
        let mut targets: BTreeMap<&str, &Run> = BTreeMap::new();
        for run in &self.runs {
            let first = targets.entry(&run.target).or_insert(run);
            if first.version != run.version {
                let [one, other] =
                    [first.version.as_deref(), run.version.as_deref()].map(|version| version.unwrap_or("unknown"));
                let (name, target) = (self.name, &run.target);
                return Err(format!("against: {name:?} has {target} in the versions {one} and {other}; one can run"));
            }
        }
        let versioned = |(name, run): (&str, &Run)| Versioned { name: name.to_owned(), version: run.version.clone() };
        Ok(targets.into_iter().map(versioned).collect())
    }
}

/// The size of a run as it is called today: a size is its cores and memory.
fn known_size<'a>(run: &Run, known: &'a [MachineSize]) -> Option<&'a MachineSize> {
    let size = run.size.as_ref()?;
    known
        .iter()
        .find(|other| (other.vcpus - size.vcpus).abs() < f64::EPSILON && other.memory_bytes == size.memory_bytes)
}

fn parameter_words(parameters: &BTreeMap<String, String>) -> String {
    if parameters.is_empty() {
        return "no parameters".to_owned();
    }
    parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn load_words(load: &Load) -> String {
    let words = match load.duration() {
        Some(duration) => format!("{}, {}", load::whole(load), format::duration(Some(duration.as_secs_f64())).text()),
        None => load::whole(load),
    };
    words.replace('\u{a0}', " ")
}

impl Completed {
    /// Whether something besides the baseline is measured.
    pub fn has_candidate(&self) -> bool {
        self.plan.targets.len() > self.targets.len()
    }

    /// The plan for an agent that offers the baseline's targets in their versions. The agent is named where another one
    /// would measure other versions. Fails with what is offered instead.
    pub fn placed(self, connected: &[(String, Connected)]) -> Result<Plan, String> {
        let Self { plan, targets } = self;
        let is_meant = |(name, agent): &&(String, Connected)| {
            plan.agent.as_ref().is_none_or(|wanted| wanted == name)
                && plan.agent_label.as_ref().is_none_or(|label| agent.has_label(label))
                && !plan.generators.contains(name)
        };
        let agents: Vec<_> = connected.iter().filter(is_meant).collect();
        if agents.is_empty() {
            // Whoever checks the plan says why.
            return Ok(plan);
        }
        let has_baseline = |agent: &Connected| targets.iter().all(|target| target.is_offered(agent));
        let has_names = |agent: &Connected| plan.targets.iter().all(|target| agent.offers(target));
        if !agents.iter().any(|(_, agent)| has_baseline(agent)) {
            return Err(missing(plan.against.as_deref().unwrap_or_default(), &targets, &agents));
        }
        let others: Vec<&str> = agents
            .iter()
            .filter(|(_, agent)| has_names(agent) && !has_baseline(agent))
            .map(|(name, _)| name.as_str())
            .collect();
        let able = agents.iter().find(|(_, agent)| has_names(agent) && has_baseline(agent));
        match (able, others.first()) {
            (Some(_), Some(other)) if plan.spread => {
                Err(format!("spread: {other} offers another version of the baseline's targets; leave spread out"))
            }
            (Some((name, _)), Some(_)) => Ok(Plan { agent: Some(name.clone()), agent_label: None, ..plan }),
            _ => Ok(plan),
        }
    }
}

impl Versioned {
    fn is_offered(&self, agent: &Connected) -> bool {
        let is_it = |version: &str| self.version.as_ref().is_none_or(|wanted| wanted == version);
        agent.hello.targets.iter().any(|offer| offer.name == self.name && is_it(&offer.version))
    }

    fn words(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Why no agent measures the baseline again, and what there is instead.
fn missing(name: &str, targets: &[Versioned], agents: &[&(String, Connected)]) -> String {
    let offers = || agents.iter().flat_map(|(_, agent)| &agent.hello.targets);
    let nowhere = targets.iter().find(|target| !agents.iter().any(|(_, agent)| target.is_offered(agent)));
    let Some(target) = nowhere else {
        let all = targets.iter().map(Versioned::words).collect::<Vec<_>>().join(", ");
        return format!("against: no connected agent offers all targets of {name:?}: {all}");
    };
    let mut offered: Vec<String> = offers().map(|offer| format!("{}@{}", offer.name, offer.version)).collect();
    offered.sort_unstable();
    offered.dedup();
    let offered = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
    let hint = if offers().any(|offer| offer.name == target.name) {
        "; to measure two versions in turn, offer each under a name of its own"
    } else {
        ""
    };
    format!("against: {} of {name:?} is offered by no connected agent; offered: {offered}{hint}", target.words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::model::size_name,
        experiments::describe::tests::plan,
        runs::{load::tests::vus, model::RunSize, testing::finished},
    };

    fn size(vcpus: f64, gib: u64) -> MachineSize {
        MachineSize { name: size_name(vcpus, gib << 30), vcpus, memory_bytes: gib << 30 }
    }

    fn on(run: Run, size: &MachineSize) -> Run {
        let MachineSize { name, vcpus, memory_bytes } = size.clone();
        Run { size: Some(RunSize { name, vcpus, memory_bytes }), ..run }
    }

    /// Two sizes, 10 and 20 VUs, with a payload.
    fn baseline() -> Vec<Run> {
        let run = |vcpus: f64, level: u32| Run {
            load: Some(vus(level, 10.0)),
            parameters: BTreeMap::from([("payload".to_owned(), "1M".to_owned())]),
            ..on(finished("servy", 1), &size(vcpus, 4))
        };
        vec![run(2.0, 20), run(2.0, 10), run(1.0, 10), run(1.0, 20)]
    }

    /// Only a candidate is named.
    fn asked() -> Plan {
        let (against, targets) = (Some("main".to_owned()), vec!["servy-next".to_owned()]);
        let (sizes, scenario, loads) = (Vec::new(), String::new(), Vec::new());
        Plan { targets, against, sizes, scenario, loads, ..plan() }
    }

    fn complete(plan: Plan, runs: &[Run]) -> Result<Completed, String> {
        Baseline::new("main", runs)?.complete(plan, &[size(1.0, 4), size(2.0, 4), size(4.0, 4)])
    }

    #[test]
    fn what_is_left_out_is_the_baselines() {
        let done = complete(asked(), &baseline()).expect("a plan");
        let Plan { targets, sizes, scenario, parameters, loads, repetitions, .. } = &done.plan;
        assert_eq!(
            (targets.as_slice(), scenario.as_str()),
            (&["servy".to_owned(), "servy-next".to_owned()][..], "hash")
        );
        assert_eq!(
            (sizes.as_slice(), parameters["payload"].as_str()),
            (&[size(2.0, 4).name, size(1.0, 4).name][..], "1M")
        );
        assert_eq!((loads.as_slice(), *repetitions), (&[vus(10, 10.0), vus(20, 10.0)][..], 3));
        assert_eq!(done.targets, [Versioned { name: "servy".to_owned(), version: Some("1.0".to_owned()) }]);
        assert!(done.has_candidate());
        let again = complete(done.plan.clone(), &baseline()).expect("a plan");
        assert_eq!(again, done, "once more it is the same");
        let alone = complete(Plan { targets: vec!["servy".to_owned()], ..asked() }, &baseline()).expect("a plan");
        assert!(!alone.has_candidate());
    }

    #[test]
    fn what_is_named_narrows_the_baseline_down_or_is_refused() {
        let one = Plan { sizes: vec!["2/4GiB".to_owned()], loads: vec![vus(20, 10.0)], ..asked() };
        let done = complete(one, &baseline()).expect("a plan").plan;
        assert_eq!((done.sizes, done.loads), (vec![size(2.0, 4).name], vec![vus(20, 10.0)]));
        let refused = |plan: Plan| complete(plan, &baseline()).expect_err("a refusal");
        assert_eq!(
            refused(Plan { sizes: vec!["4/4GiB".to_owned()], ..asked() }),
            "sizes: \"main\" was measured with 2 vCPU / 4 GiB; 1 vCPU / 4 GiB, not with 4 vCPU / 4 GiB"
        );
        assert_eq!(
            refused(Plan { scenario: "site-mix".to_owned(), ..asked() }),
            "scenario: \"main\" was measured with hash, not with site-mix"
        );
        assert_eq!(
            refused(Plan { loads: vec![vus(10, 5.0)], ..asked() }),
            "loads: \"main\" was measured with 20 VUs, 10 s; 10 VUs, 10 s, not with 10 VUs, 5 s"
        );
        let parameters = BTreeMap::from([("payload".to_owned(), "10K".to_owned())]);
        assert_eq!(
            refused(Plan { parameters, ..asked() }),
            "parameters: \"main\" was measured with payload=1M, not with payload=10K"
        );
    }

    #[test]
    fn what_is_not_clear_is_refused() {
        let with = |change: fn(&mut Run)| {
            let mut runs = baseline();
            change(&mut runs[0]);
            complete(asked(), &runs).expect_err("a refusal")
        };
        let scenario = with(|run| run.scenario = Some("site-mix".to_owned()));
        assert_eq!(scenario, "scenario: \"main\" was measured with site-mix; hash: name one of them");
        let version = with(|run| run.version = Some("1.1".to_owned()));
        assert_eq!(version, "against: \"main\" has servy in the versions 1.1 and 1.0; one can run");
        let imports: Vec<Run> = baseline().into_iter().map(|run| Run { origin: Origin::Import, ..run }).collect();
        let refused = complete(asked(), &imports).expect_err("a refusal");
        assert_eq!(refused, "against: \"main\" has no runs with results that an agent measured");
    }
}
