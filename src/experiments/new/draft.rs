//! The input of the form for a new run, valid or not. Pure.

mod faults;
mod load;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use faults::Faults;
pub use load::LoadBy;
use url::form_urlencoded;

use crate::experiments::{
    knee::model::DEFAULT_PRECISION,
    new::preset::Preset,
    plan::{PROFILED_REPETITIONS, Plan, default_repetitions, default_retries, share, share_text},
    plan_fields::{self, seconds},
    stopping_rule::StoppingRule,
};

/// The input of the form. Fields have the names of the flags of `brewbench run new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Name; empty for a generated one.
    pub name: String,
    /// Names of targets.
    pub targets: Vec<String>,
    /// Name of the baseline to measure again; empty for none.
    pub against: String,
    /// Names of machine sizes.
    pub sizes: Vec<String>,
    /// Name of a scenario.
    pub scenario: String,
    /// Parameters, perhaps including those of other scenarios.
    pub parameters: BTreeMap<String, String>,
    /// Kind of load.
    pub load: LoadBy,
    /// Virtual users, one level or several.
    pub vus: String,
    /// Iterations per second, one level or several.
    pub rate: String,
    /// Duration of a constant load.
    pub duration: String,
    /// Virtual users in stages.
    pub vus_stages: String,
    /// Iterations per second in stages.
    pub rate_stages: String,
    /// Maximum virtual users of a rate; empty for the default.
    pub max_vus: String,
    /// Range of a knee search.
    pub knee: String,
    /// Objective of a knee search.
    pub objective: String,
    /// Precision of a knee search.
    pub precision: String,
    /// Texts of other fields, by flag.
    pub fields: BTreeMap<&'static str, String>,
    /// Repetitions.
    pub repeat: String,
    /// Number of profiled repetitions; empty for none.
    pub profile: String,
    /// Interval width at which adaptive repetitions stop; empty for a fixed number of repetitions.
    pub until: String,
    /// Maximum number of adaptive repetitions.
    pub at_most: String,
    /// Maximum number of retries of a failed run.
    pub retries: String,
    /// Seed of the run order; empty for a random one.
    pub seed: String,
    /// Name of an agent; empty for any able one.
    pub agent: String,
    /// Required label of the agent; empty if an agent is named or any may do it.
    pub agent_label: String,
    /// Whether several machines may share it.
    pub spread: bool,
    /// Names of agents that generate the load; empty for the target's own.
    pub load_from: Vec<String>,
    /// Number of load generators in the cluster of the agent; empty for none.
    pub generators: String,
}

/// Value of the checkbox `spread`.
const SPREAD: &str = "on";

impl Default for Draft {
    fn default() -> Self {
        Self {
            name: String::new(),
            targets: Vec::new(),
            against: String::new(),
            sizes: Vec::new(),
            scenario: "hash".to_owned(),
            parameters: BTreeMap::new(),
            load: LoadBy::Vus,
            vus: "10".to_owned(),
            rate: "1000".to_owned(),
            duration: "10s".to_owned(),
            vus_stages: "5s:10,10s:50,5s:0".to_owned(),
            rate_stages: "5s:500,10s:2000,5s:0".to_owned(),
            max_vus: String::new(),
            knee: "1000..20000".to_owned(),
            objective: "p99<50ms, failures<0.1%".to_owned(),
            precision: share_text(DEFAULT_PRECISION),
            fields: BTreeMap::new(),
            repeat: default_repetitions().to_string(),
            profile: String::new(),
            until: String::new(),
            at_most: "20".to_owned(),
            retries: default_retries().to_string(),
            seed: String::new(),
            agent: String::new(),
            agent_label: String::new(),
            spread: false,
            load_from: Vec::new(),
            generators: String::new(),
        }
    }
}

/// Returns the text of a number; empty for 0.
fn count(number: u32) -> String {
    if number == 0 { String::new() } else { number.to_string() }
}

impl Draft {
    /// Adds the targets of a query.
    #[must_use]
    pub fn with_targets(mut self, query: &[u8]) -> Self {
        for target in Self::parse(query).targets {
            if !self.targets.contains(&target) {
                self.targets.push(target);
            }
        }
        self
    }

    /// Parses a form body or a query. Missing fields have their defaults.
    pub fn parse(encoded: &[u8]) -> Self {
        let (mut draft, mut preset) = (Self::default(), None);
        for (field, value) in form_urlencoded::parse(encoded) {
            let value = value.trim().to_owned();
            match field.as_ref() {
                "name" => draft.name = value,
                // A revision that was typed is an option once it is known.
                "target" if value.is_empty() || draft.targets.contains(&value) => {}
                "target" => draft.targets.push(value),
                "against" => draft.against = value,
                "size" => draft.sizes.push(value),
                "scenario" => draft.scenario = value,
                "load" => draft.load = LoadBy::ALL.into_iter().find(|by| by.as_str() == value).unwrap_or(LoadBy::Vus),
                "vus" => draft.vus = value,
                "rate" => draft.rate = value,
                "duration" => draft.duration = value,
                "vus-stages" => draft.vus_stages = value,
                "rate-stages" => draft.rate_stages = value,
                "max-vus" => draft.max_vus = value,
                "knee" => draft.knee = value,
                "objective" => draft.objective = value,
                "precision" => draft.precision = value,
                "repeat" => draft.repeat = value,
                "profile" => draft.profile = value,
                "until" => draft.until = value,
                "at-most" => draft.at_most = value,
                "retries" => draft.retries = value,
                "seed" => draft.seed = value,
                "agent" => draft.choose_agent(value),
                "agent-label" => draft.agent_label = value,
                "spread" => draft.spread = value == SPREAD,
                "load-from" => draft.load_from.push(value),
                "generators" => draft.generators = value,
                "preset" => preset = Preset::ALL.into_iter().find(|preset| preset.key() == value),
                other => {
                    if let Some(name) = other.strip_prefix("set.") {
                        draft.parameters.insert(name.to_owned(), value);
                    } else if let Some(field) = plan_fields::find(other) {
                        draft.fields.insert(field.flag, value);
                    }
                }
            }
        }
        if let Some(preset) = preset {
            preset.apply(&mut draft);
        }
        draft
    }

    /// Sets the agent or label from their common field.
    ///
    /// A label has the prefix `label:`. An agent whose name starts with such a prefix has the prefix `agent:`.
    fn choose_agent(&mut self, value: String) {
        (self.agent, self.agent_label) = match (value.strip_prefix("label:"), value.strip_prefix("agent:")) {
            (Some(label), _) => (String::new(), label.to_owned()),
            (None, Some(name)) => (name.to_owned(), String::new()),
            (None, None) => (value, String::new()),
        };
    }

    /// Returns the value of the common field that selects an agent.
    pub fn agent_choice(name: &str) -> String {
        let needs_prefix = name.starts_with("label:") || name.starts_with("agent:");
        if needs_prefix { format!("agent:{name}") } else { name.to_owned() }
    }

    /// Returns the draft of a plan, without its seed.
    pub fn from_plan(plan: &Plan) -> Self {
        let default = Self::default();
        Self {
            name: plan.name.clone().unwrap_or_default(),
            targets: plan.targets.clone(),
            against: plan.against.clone().unwrap_or_default(),
            sizes: plan.sizes.clone(),
            scenario: plan.scenario.clone(),
            parameters: plan.parameters.clone(),
            fields: plan_fields::texts(plan).collect(),
            repeat: plan.repetitions.to_string(),
            profile: count(plan.profiled_repetitions),
            until: plan.stopping_rule.map(|until| share_text(until.narrower_than)).unwrap_or_default(),
            at_most: plan.stopping_rule.map_or_else(|| default.at_most.clone(), |until| until.at_most.to_string()),
            retries: plan.retries.to_string(),
            agent: plan.agent.clone().unwrap_or_default(),
            agent_label: plan.agent_label.clone().unwrap_or_default(),
            spread: plan.spread,
            load_from: plan.generators.clone(),
            generators: count(plan.cluster_generators),
            ..match &plan.knee {
                Some(knee) => default.with_knee(knee),
                None => default.with_loads(&plan.loads),
            }
        }
    }

    /// Returns the draft as a URL query.
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.targets.iter().map(|name| ("target", name)));
        if !self.against.is_empty() {
            query.append_pair("against", &self.against);
        }
        query.extend_pairs(self.sizes.iter().map(|name| ("size", name)));
        query.append_pair("scenario", &self.scenario);
        query.extend_pairs(self.parameters.iter().map(|(name, value)| (format!("set.{name}"), value)));
        query.append_pair("load", self.load.as_str());
        match self.load {
            LoadBy::Vus => query.append_pair("vus", &self.vus).append_pair("duration", &self.duration),
            LoadBy::VusStages => query.append_pair("vus-stages", &self.vus_stages),
            LoadBy::Rate => query.append_pair("rate", &self.rate).append_pair("duration", &self.duration),
            LoadBy::RateStages => query.append_pair("rate-stages", &self.rate_stages),
            LoadBy::Knee => query
                .append_pair("knee", &self.knee)
                .append_pair("objective", &self.objective)
                .append_pair("precision", &self.precision)
                .append_pair("duration", &self.duration),
            LoadBy::Script => &mut query,
        };
        if self.load.is_open() && !self.max_vus.is_empty() {
            query.append_pair("max-vus", &self.max_vus);
        }
        query.extend_pairs(self.fields.iter().filter(|(_, text)| !text.is_empty()));
        query.append_pair("repeat", &self.repeat);
        if !self.profile.is_empty() {
            query.append_pair("profile", &self.profile);
        }
        if !self.until.is_empty() {
            query.append_pair("until", &self.until).append_pair("at-most", &self.at_most);
        }
        query.append_pair("retries", &self.retries);
        query.extend_pairs(self.load_from.iter().map(|name| ("load-from", name)));
        if !self.generators.is_empty() {
            query.append_pair("generators", &self.generators);
        }
        if self.spread {
            query.append_pair("spread", SPREAD);
        }
        let agent = Self::agent_choice(&self.agent);
        let named = [("seed", &self.seed), ("agent", &agent), ("agent-label", &self.agent_label), ("name", &self.name)];
        query.extend_pairs(named.into_iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }

    /// Returns the plan for a scenario with these defaults, or all faults.
    pub fn plan(&self, defaults: &BTreeMap<String, String>) -> Result<Plan, Faults> {
        let (load, mut faults) = match self.loads() {
            Ok(load) => (Some(load), Faults::default()),
            Err(faults) => (None, faults),
        };
        let repetitions = number("repeat", &self.repeat, &mut faults);
        let profiled_repetitions = self.profiled_repetitions(&mut faults);
        let with_fields = self.with_fields(&mut faults);
        let cluster_generators =
            if self.generators.is_empty() { Some(0) } else { number("generators", &self.generators, &mut faults) };
        let until = self.until(&mut faults);
        let retries = number("retries", &self.retries, &mut faults);
        let seed = if self.seed.is_empty() { Some(None) } else { number("seed", &self.seed, &mut faults).map(Some) };
        let (
            Some((loads, knee)),
            Some(repetitions),
            Some(profiled_repetitions),
            Some(until),
            Some(retries),
            Some(seed),
            Some(cluster_generators),
        ) = (load, repetitions, profiled_repetitions, until, retries, seed, cluster_generators)
        else {
            return Err(faults);
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let differs = |(name, value): &(&String, &String)| defaults.get(*name).is_some_and(|default| default != *value);
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Ok(Plan {
            name: text(&self.name),
            targets: self.targets.clone(),
            against: text(&self.against),
            sizes: self.sizes.clone(),
            scenario: self.scenario.clone(),
            parameters: self
                .parameters
                .iter()
                .filter(differs)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            loads,
            knee,
            repetitions,
            profiled_repetitions,
            stopping_rule: until,
            retries,
            seed,
            agent: text(&self.agent),
            agent_label: text(&self.agent_label),
            spread: self.spread,
            generators: self.load_from.clone(),
            cluster_generators,
            ..with_fields
        })
    }

    /// Returns the text of a field of [`plan_fields`]; empty for its default.
    pub fn text(&self, flag: &str) -> &str {
        self.fields.get(flag).map_or("", String::as_str)
    }

    /// Returns a plan with nothing but the fields of [`plan_fields`].
    pub fn with_fields(&self, faults: &mut Faults) -> Plan {
        let mut plan = Plan::default();
        for field in &plan_fields::FIELDS {
            let text = self.text(field.flag);
            if !text.is_empty()
                && let Err(sentence) = (field.set)(&mut plan, text)
            {
                faults.add(field.flag, &sentence);
            }
        }
        plan
    }

    /// Returns the number of load generators in a cluster; `None` if the field is no number.
    pub fn cluster_generators(&self) -> Option<u32> {
        if self.generators.is_empty() { Some(0) } else { self.generators.parse().ok() }
    }

    /// Returns the number of profiled repetitions; a knee search has none.
    fn profiled_repetitions(&self, faults: &mut Faults) -> Option<u32> {
        if self.profile.is_empty() || self.load == LoadBy::Knee {
            return Some(0);
        }
        number("profile", &self.profile, faults)
    }

    /// The value of the checkbox that requests profiles.
    pub fn profile_choice(&self) -> String {
        if self.profile.is_empty() { PROFILED_REPETITIONS.to_string() } else { self.profile.clone() }
    }

    /// Returns the stopping rule; the outer `None` if it is invalid.
    #[expect(clippy::option_option, reason = "inner `None`: a fixed number of repetitions")]
    fn until(&self, faults: &mut Faults) -> Option<Option<StoppingRule>> {
        if self.until.is_empty() || self.load == LoadBy::Knee {
            return Some(None);
        }
        let narrower_than = share(&self.until).map_err(|sentence| faults.add("until", &sentence)).ok();
        let at_most = number("at-most", &self.at_most, faults);
        Some(Some(StoppingRule { narrower_than: narrower_than?, at_most: at_most? }))
    }
}

fn number(field: &'static str, text: &str, faults: &mut Faults) -> Option<u32> {
    let parsed = text.parse::<u32>().ok();
    if parsed.is_none() {
        faults.add(field, "must be a whole number, such as 10");
    }
    parsed
}

fn time(field: &'static str, text: &str, faults: &mut Faults) -> Option<f64> {
    let parsed = seconds(text);
    if parsed.is_none() {
        faults.add(field, "must be a time, such as 10s, 500ms or 1m30s");
    }
    parsed
}
