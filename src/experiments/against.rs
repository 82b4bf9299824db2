//! Completes a plan that measures a baseline again, interleaved with a candidate, and selects an agent for it. Pure.
//!
//! Runs of two experiments also differ by how the machine has changed in between. Interleaved runs share these
//! conditions, so a difference is caused by the programs.

use std::collections::BTreeMap;

use brewbench_wire::{
    engine::EngineKind,
    load::{Load, Shape},
    manifest::source::split_target,
    messages::TargetOffer,
    run_spec::HttpVersion,
};

use crate::{
    catalog::model::{MachineSize, find_size},
    experiments::plan::Plan,
    fleet::presence::Connected,
    runs::{
        load,
        model::{Origin, Run, RunSize},
    },
    web::format,
};

/// The runs of a baseline that can be measured again.
#[derive(Clone, Debug)]
pub struct Baseline<'a> {
    /// The name or id in the plan.
    name: &'a str,
    runs: Vec<&'a Run>,
}

/// A plan completed with the settings of its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// The plan with the baseline's targets and the candidates, and the baseline's other settings.
    pub plan: Plan,
    /// The baseline's targets.
    pub targets: Vec<Versioned>,
}

/// A target of a baseline with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// Name of the target.
    pub name: String,
    /// Version, if its runs have one.
    pub version: Option<String>,
}

/// Load generator, HTTP version, scenario of the script, and factor on its load.
type Requests = (Option<EngineKind>, HttpVersion, Option<String>, Option<f64>);

impl<'a> Baseline<'a> {
    /// Selects the runs that can be measured again; fails if there are none. The load of imports is unknown.
    pub fn new(name: &'a str, runs: &'a [Run]) -> Result<Self, String> {
        let is_repeatable = |run: &&Run| {
            run.counts()
                && run.origin == Origin::Agent
                && run.spec.size.is_some()
                && run.spec.scenario.is_some()
                && run.spec.load.is_some()
        };
        let runs: Vec<&Run> = runs.iter().filter(is_repeatable).collect();
        if runs.is_empty() {
            return Err(format!("against: {name:?} has no valid runs measured by an agent"));
        }
        Ok(Self { name, runs })
    }

    /// Fills in omitted settings from the baseline.
    ///
    /// Settings that the plan has restrict the baseline. Fails if no run matches, or if a setting is ambiguous.
    pub fn complete(mut self, plan: Plan, known_sizes: &[MachineSize]) -> Result<Completed, String> {
        if plan.knee.is_some() {
            return Err("knee: can't be combined with against; a baseline is measured under its own load".to_owned());
        }
        let given = Some(plan.scenario).filter(|scenario| !scenario.is_empty());
        let scenario = self.single_value("scenario", given, |run| run.spec.scenario.clone(), String::clone)?;
        let given = Some(plan.parameters).filter(|parameters| !parameters.is_empty());
        let parameters =
            self.single_value("parameters", given, |run| Some(run.spec.parameters.clone()), describe_parameters)?;
        let given = (plan.engine, plan.http_version, plan.script_scenario.clone(), plan.scale);
        let (engine, http_version, script_scenario, scale) = self.requests(given)?;
        let size_name = |run: &Run| Some(known_size(run, known_sizes)?.name.clone());
        let full_name = |size: String| find_size(known_sizes, &size).map_or(size, |size| size.name.clone());
        let given = plan.sizes.into_iter().map(full_name).collect();
        let sizes = self.several("sizes", given, size_name, String::clone)?;
        let mut loads = self.several("loads", plan.loads, |run| run.spec.load.clone(), describe_load)?;
        loads.sort_by_key(|load| load.shape().map(Shape::peak));
        let own = self.targets()?;
        let is_own = |name: &&String| {
            // A revision means another commit by now.
            let is_bare = !name.contains('@');
            own.iter().any(|target| target.key() == **name || is_bare && target.name == **name)
        };
        let candidates = plan.targets.iter().filter(|name| !is_own(name)).cloned();
        let named = |target: &Versioned| {
            if target.name.contains('@') { target.key() } else { target.name.clone() }
        };
        let targets = own.iter().map(named).chain(candidates).collect();
        // Both are measured again, so a duet needs no baseline that was measured in one.
        let duet = plan.duet || self.runs.iter().all(|run| run.spec.duet);
        let plan = Plan { targets, sizes, scenario, parameters, loads, duet, ..plan };
        Ok(Completed { plan: Plan { http_version, engine, script_scenario, scale, ..plan }, targets: own })
    }

    /// Fills in what makes other requests of the same load.
    fn requests(&mut self, (engine, http_version, only, scale): Requests) -> Result<Requests, String> {
        let engine =
            self.single_value("engine", engine, |run| Some(run.spec.engine()), |engine| engine.as_str().to_owned())?;
        let given = Some(http_version).filter(|version| *version != HttpVersion::Auto);
        let http_version = self.single_value(
            "http_version",
            given,
            |run| Some(run.spec.http_version),
            |version| version.as_str().to_owned(),
        )?;
        let only = self.single_value(
            "script_scenario",
            only,
            |run| Some(run.spec.script_scenario.clone().unwrap_or_default()),
            |name| if name.is_empty() { "all scenarios of the script".to_owned() } else { name.clone() },
        )?;
        let scale = self.single_value("scale", scale, |run| Some(run.spec.scale.unwrap_or(1.0)), f64::to_string)?;
        let is_usual = |scale: &f64| (scale - 1.0).abs() < f64::EPSILON;
        Ok((
            Some(engine),
            http_version,
            Some(only).filter(|name| !name.is_empty()),
            Some(scale).filter(|scale| !is_usual(scale)),
        ))
    }

    /// Returns the single value of a setting; a given value restricts the runs to those that have it.
    fn single_value<T: PartialEq + Clone>(
        &mut self,
        field: &str,
        given: Option<T>,
        get: impl Fn(&Run) -> Option<T>,
        describe: impl Fn(&T) -> String,
    ) -> Result<T, String> {
        let is_omitted = given.is_none();
        let mut values = self.several(field, given.into_iter().collect(), get, &describe)?;
        if is_omitted && values.len() > 1 {
            let known = values.iter().map(describe).collect::<Vec<_>>().join("; ");
            return Err(format!("{field}: {:?} was measured with {known}; name one of them", self.name));
        }
        values.pop().ok_or_else(|| format!("{field}: unknown for {:?}", self.name))
    }

    /// Returns all values of a setting; given values restrict the runs to those that have them.
    fn several<T: PartialEq>(
        &mut self,
        field: &str,
        given: Vec<T>,
        get: impl Fn(&Run) -> Option<T>,
        describe: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, String> {
        let mut known: Vec<T> = Vec::new();
        for value in self.runs.iter().filter_map(|run| get(run)) {
            if !known.contains(&value) {
                known.push(value);
            }
        }
        if let Some(other) = given.iter().find(|value| !known.contains(value)) {
            let known = known.iter().map(&describe).collect::<Vec<_>>().join("; ");
            let (name, other) = (self.name, describe(other));
            return Err(format!("{field}: {name:?} was measured with {known}, not with {other}"));
        }
        if given.is_empty() {
            return Ok(known);
        }
        self.runs.retain(|run| get(run).is_some_and(|value| given.contains(&value)));
        Ok(given)
    }

    /// Returns its targets; fails if one has several versions.
    fn targets(&self) -> Result<Vec<Versioned>, String> {
        let mut targets: BTreeMap<&str, &Run> = BTreeMap::new();
        for run in &self.runs {
            let first = targets.entry(&run.spec.target).or_insert(run);
            if first.version != run.version {
                let [one, other] =
                    [first.version.as_deref(), run.version.as_deref()].map(|version| version.unwrap_or("unknown"));
                let (name, target) = (self.name, &run.spec.target);
                return Err(format!("against: {name:?} has {target} in versions {one} and {other}; only one can run"));
            }
        }
        let versioned = |(name, run): (&str, &Run)| Versioned { name: name.to_owned(), version: run.version.clone() };
        Ok(targets.into_iter().map(versioned).collect())
    }
}

/// Returns the current size with the cores and memory of a run, which may have been renamed since.
fn known_size<'a>(run: &Run, known: &'a [MachineSize]) -> Option<&'a MachineSize> {
    let size = run.spec.size.as_ref()?;
    known.iter().find(|other| RunSize { name: size.name.clone(), ..RunSize::from(*other) } == *size)
}

fn describe_parameters(parameters: &BTreeMap<String, String>) -> String {
    if parameters.is_empty() {
        return "no parameters".to_owned();
    }
    parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn describe_load(load: &Load) -> String {
    let words = match load.duration() {
        Some(duration) => {
            format!("{}, {}", load::with_max_vus(load), format::duration(Some(duration.as_secs_f64())).text())
        }
        None => load::with_max_vus(load),
    };
    words.replace('\u{a0}', " ")
}

impl Completed {
    /// Whether the plan has a target besides those of the baseline.
    pub fn has_candidate(&self) -> bool {
        self.plan.targets.len() > self.targets.len()
    }

    /// Returns the plan for agents that offer the baseline's targets in their versions.
    ///
    /// Names the agent if others would measure other versions. If no agent offers them, fails with what is offered.
    pub fn placed(self, connected: &[(String, Connected)]) -> Result<Plan, String> {
        let Self { plan, targets } = self;
        let is_requested = |(name, agent): &&(String, Connected)| {
            plan.agent.as_ref().is_none_or(|wanted| wanted == name)
                && plan.agent_label.as_ref().is_none_or(|label| agent.has_label(label))
                && !plan.generators.contains(name)
        };
        let agents: Vec<_> = connected.iter().filter(is_requested).collect();
        if agents.is_empty() {
            // The feasibility check reports the reason.
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
                Err(format!("spread: {other} offers another version of the baseline's targets; omit spread"))
            }
            (Some((name, agent)), Some(_)) => {
                Ok(Plan { agent: Some(name.clone()), agent_label: None, ..with_commits(plan, &targets, agent) })
            }
            (Some((_, agent)), None) => Ok(with_commits(plan, &targets, agent)),
            (None, _) => Ok(plan),
        }
    }
}

/// Names the commits of a baseline's targets that were built from the default branch, which may have moved on.
fn with_commits(mut plan: Plan, targets: &[Versioned], agent: &Connected) -> Plan {
    for target in targets {
        if let Some(name) = plan.targets.iter_mut().find(|name| **name == target.name)
            && target.is_built_by(agent)
        {
            *name = target.key();
        }
    }
    plan
}

impl Versioned {
    fn base_name(&self) -> &str {
        split_target(&self.name).0
    }

    fn is_built_by(&self, agent: &Connected) -> bool {
        agent.hello.targets.iter().any(|offer| offer.name == self.base_name() && !offer.revisions.is_empty())
    }

    fn is_offered(&self, agent: &Connected) -> bool {
        let matches = |version: &str| self.version.as_ref().is_none_or(|wanted| wanted == version);
        let is_here = |offer: &TargetOffer| offer.name == self.base_name() && matches(&offer.version);
        self.is_built_by(agent) || agent.hello.targets.iter().any(is_here)
    }

    /// Returns the name that measures its version again.
    fn key(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.base_name()),
            None => self.name.clone(),
        }
    }
}

/// Describes why no agent can measure the baseline again, and what is offered instead.
fn missing(name: &str, targets: &[Versioned], agents: &[&(String, Connected)]) -> String {
    let offers = || agents.iter().flat_map(|(_, agent)| &agent.hello.targets);
    let nowhere = targets.iter().find(|target| !agents.iter().any(|(_, agent)| target.is_offered(agent)));
    let Some(target) = nowhere else {
        let all = targets.iter().map(Versioned::key).collect::<Vec<_>>().join(", ");
        return format!("against: no connected agent offers all targets of {name:?}: {all}");
    };
    let mut offered: Vec<String> = offers().map(|offer| format!("{}@{}", offer.name, offer.version)).collect();
    offered.sort_unstable();
    offered.dedup();
    let offered = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
    let hint = if offers().any(|offer| offer.name == target.name) {
        "; to measure two versions side by side, offer each under its own name"
    } else {
        ""
    };
    format!("against: no connected agent offers {} of {name:?}; offered: {offered}{hint}", target.key())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::model::size_name,
        experiments::describe::tests::plan,
        runs::{load::tests::vus, model::RunSpec, testing::finished},
    };

    fn size(vcpus: f64, gib: u64) -> MachineSize {
        MachineSize { name: size_name(vcpus, gib << 30, 1), vcpus, memory_bytes: gib << 30, replicas: 1 }
    }

    fn on(run: Run, size: &MachineSize) -> Run {
        let MachineSize { name, vcpus, memory_bytes, replicas } = size.clone();
        Run { spec: RunSpec { size: Some(RunSize { name, vcpus, memory_bytes, replicas }), ..run.spec.clone() }, ..run }
    }

    /// Returns runs in two sizes, under 10 and 20 VUs, with a payload.
    fn baseline() -> Vec<Run> {
        let run = |vcpus: f64, level: u32| Run {
            spec: RunSpec {
                load: Some(vus(level, 10.0)),
                parameters: BTreeMap::from([("payload".to_owned(), "1M".to_owned())]),
                ..on(finished("servy", 1), &size(vcpus, 4)).spec
            },
            ..on(finished("servy", 1), &size(vcpus, 4))
        };
        vec![run(2.0, 20), run(2.0, 10), run(1.0, 10), run(1.0, 20)]
    }

    /// Returns a plan that names only a candidate.
    fn candidate_plan() -> Plan {
        let (against, targets) = (Some("main".to_owned()), vec!["servy-next".to_owned()]);
        let (sizes, scenario, loads) = (Vec::new(), String::new(), Vec::new());
        Plan { targets, against, sizes, scenario, loads, ..plan() }
    }

    fn complete(plan: Plan, runs: &[Run]) -> Result<Completed, String> {
        Baseline::new("main", runs)?.complete(plan, &[size(1.0, 4), size(2.0, 4), size(4.0, 4)])
    }

    #[test]
    fn omitted_settings_come_from_the_baseline() {
        let completed = complete(candidate_plan(), &baseline()).expect("a plan");
        let Plan { targets, sizes, scenario, parameters, loads, repetitions, .. } = &completed.plan;
        assert_eq!(
            (targets.as_slice(), scenario.as_str()),
            (&["servy".to_owned(), "servy-next".to_owned()][..], "hash")
        );
        assert_eq!(
            (sizes.as_slice(), parameters["payload"].as_str()),
            (&[size(2.0, 4).name, size(1.0, 4).name][..], "1M")
        );
        assert_eq!((loads.as_slice(), *repetitions), (&[vus(10, 10.0), vus(20, 10.0)][..], 3));
        assert_eq!(completed.targets, [Versioned { name: "servy".to_owned(), version: Some("1.0".to_owned()) }]);
        assert!(completed.has_candidate());
        let again = complete(completed.plan.clone(), &baseline()).expect("a plan");
        assert_eq!(again, completed, "completing is idempotent");
        let alone =
            complete(Plan { targets: vec!["servy".to_owned()], ..candidate_plan() }, &baseline()).expect("a plan");
        assert!(!alone.has_candidate());
    }

    #[test]
    fn the_requests_are_those_of_the_baseline() {
        let mut runs = baseline();
        for run in &mut runs {
            (run.spec.requested_engine, run.spec.scale) = (Some(EngineKind::Native), Some(2.0));
            (run.spec.http_version, run.spec.script_scenario) = (HttpVersion::Http1, Some("shop".to_owned()));
        }
        let plan = complete(candidate_plan(), &runs).expect("a plan").plan;
        assert_eq!((plan.engine, plan.http_version), (Some(EngineKind::Native), HttpVersion::Http1));
        assert_eq!((plan.script_scenario.as_deref(), plan.scale), (Some("shop"), Some(2.0)));
        let refused =
            complete(Plan { engine: Some(EngineKind::K6), ..candidate_plan() }, &runs).expect_err("a refusal");
        assert_eq!(refused, "engine: \"main\" was measured with native, not with k6");
        runs[0].spec.requested_engine = None;
        let refused = complete(candidate_plan(), &runs).expect_err("a refusal");
        assert_eq!(refused, "engine: \"main\" was measured with k6; native; name one of them");
    }

    #[test]
    fn given_settings_restrict_the_baseline_or_are_refused() {
        let one = Plan { sizes: vec!["2/4GiB".to_owned()], loads: vec![vus(20, 10.0)], ..candidate_plan() };
        let plan = complete(one, &baseline()).expect("a plan").plan;
        assert_eq!((plan.sizes, plan.loads), (vec![size(2.0, 4).name], vec![vus(20, 10.0)]));
        let refused = |plan: Plan| complete(plan, &baseline()).expect_err("a refusal");
        assert_eq!(
            refused(Plan { sizes: vec!["4/4GiB".to_owned()], ..candidate_plan() }),
            "sizes: \"main\" was measured with 2 vCPU / 4 GiB; 1 vCPU / 4 GiB, not with 4 vCPU / 4 GiB"
        );
        assert_eq!(
            refused(Plan { scenario: "site-mix".to_owned(), ..candidate_plan() }),
            "scenario: \"main\" was measured with hash, not with site-mix"
        );
        assert_eq!(
            refused(Plan { loads: vec![vus(10, 5.0)], ..candidate_plan() }),
            "loads: \"main\" was measured with 20 VUs, 10 s; 10 VUs, 10 s, not with 10 VUs, 5 s"
        );
        let parameters = BTreeMap::from([("payload".to_owned(), "10K".to_owned())]);
        assert_eq!(
            refused(Plan { parameters, ..candidate_plan() }),
            "parameters: \"main\" was measured with payload=1M, not with payload=10K"
        );
    }

    #[test]
    fn ambiguous_baselines_are_refused() {
        let with = |change: fn(&mut Run)| {
            let mut runs = baseline();
            change(&mut runs[0]);
            complete(candidate_plan(), &runs).expect_err("a refusal")
        };
        let scenario = with(|run| run.spec.scenario = Some("site-mix".to_owned()));
        assert_eq!(scenario, "scenario: \"main\" was measured with site-mix; hash; name one of them");
        let version = with(|run| run.version = Some("1.1".to_owned()));
        assert_eq!(version, "against: \"main\" has servy in versions 1.1 and 1.0; only one can run");
        let imports: Vec<Run> = baseline().into_iter().map(|run| Run { origin: Origin::Import, ..run }).collect();
        let refused = complete(candidate_plan(), &imports).expect_err("a refusal");
        assert_eq!(refused, "against: \"main\" has no valid runs measured by an agent");
    }
}
