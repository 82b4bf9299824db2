//! What somebody has typed into the form of a new run, whether it makes sense or not. Pure.

mod load;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use load::LoadBy;
use url::form_urlencoded;

use crate::experiments::{
    knee::model::USUAL_PRECISION,
    plan::{Plan, default_repetitions, default_retries, default_warm_up_s, share, share_text},
    stopping_rule::Until,
};

/// The form as it was filled in. Fields are called as the flags of `brewbench run new` are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What to call it; empty for a name that is made up.
    pub name: String,
    /// Names of targets.
    pub targets: Vec<String>,
    /// Name of the baseline that is measured again next to them; empty for none.
    pub against: String,
    /// Names of machine sizes.
    pub sizes: Vec<String>,
    /// Name of a scenario.
    pub scenario: String,
    /// Parameters, those of other scenarios among them.
    pub parameters: BTreeMap<String, String>,
    /// By what the load is given.
    pub load: LoadBy,
    /// Virtual users, one level or several.
    pub vus: String,
    /// Iterations per second, one level or several.
    pub rate: String,
    /// How long a constant load lasts.
    pub duration: String,
    /// Virtual users in stages.
    pub vus_stages: String,
    /// Iterations per second in stages.
    pub rate_stages: String,
    /// Virtual users that keep a rate up; empty for as many as are usual.
    pub max_vus: String,
    /// Between which rates a knee is searched for.
    pub knee: String,
    /// What must hold below it.
    pub objective: String,
    /// How far the rates around it may be apart.
    pub precision: String,
    /// Warm-up.
    pub warm_up: String,
    /// Repetitions.
    pub repeat: String,
    /// More of them until intervals are narrower than this; empty for as many as are said.
    pub until: String,
    /// But so many at most.
    pub at_most: String,
    /// How many times a repetition is done again that came to nothing.
    pub retries: String,
    /// What the order is shuffled by; empty for chance.
    pub seed: String,
    /// An agent's name; empty for any that can.
    pub agent: String,
    /// What the agent is to be labelled; empty where one is named, or any may.
    pub agent_label: String,
    /// Whether several machines may do it at once.
    pub spread: bool,
    /// Names of agents that make the load; none for the target's own.
    pub load_from: Vec<String>,
}

/// What the box says that lets several machines do it.
const SPREAD: &str = "on";

/// What is wrong, by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<&'static str, String>);

/// The fields of the form, and what a refusal of the API calls them.
const FIELDS: [(&str, &str); 17] = [
    ("target", "target"),
    ("targets", "target"),
    ("against", "against"),
    ("size", "size"),
    ("sizes", "size"),
    ("scenario", "scenario"),
    ("parameters", "set"),
    ("warm_up_s", "warm-up"),
    ("repetitions", "repeat"),
    ("until", "until"),
    ("retries", "retries"),
    ("knee", "knee"),
    ("loads", "load"),
    ("agent", "agent"),
    ("agent_label", "agent"),
    ("spread", "spread"),
    ("generators", "load-from"),
];

impl Faults {
    /// What is wrong with a field.
    pub fn of(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    /// What is wrong with all of it rather than with one field.
    pub fn general(&self) -> Option<&str> {
        self.of("")
    }

    /// The first thing that is wrong.
    pub fn first(&self) -> Option<&str> {
        self.0.values().next().map(String::as_str)
    }

    /// Notes a refusal of the API: it names its field before a colon.
    pub fn refused(&mut self, sentence: &str) {
        let (field, rest) = sentence.split_once(": ").unwrap_or(("", sentence));
        match FIELDS.iter().find(|(known, _)| *known == field) {
            Some((_, field)) => self.0.insert(field, rest.to_owned()),
            None if field == "name" => self.0.insert("name", rest.to_owned()),
            None => self.0.insert("", sentence.to_owned()),
        };
    }

    /// Forgets what is wrong with a field.
    pub fn forget(&mut self, field: &str) {
        self.0.remove(field);
    }

    fn add(&mut self, field: &'static str, sentence: &str) {
        self.0.insert(field, sentence.to_owned());
    }
}

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
            precision: share_text(USUAL_PRECISION),
            warm_up: written(default_warm_up_s()),
            repeat: default_repetitions().to_string(),
            until: String::new(),
            at_most: "20".to_owned(),
            retries: default_retries().to_string(),
            seed: String::new(),
            agent: String::new(),
            agent_label: String::new(),
            spread: false,
            load_from: Vec::new(),
        }
    }
}

impl Draft {
    /// With the targets of a query beside its own.
    #[must_use]
    pub fn with_targets(mut self, query: &[u8]) -> Self {
        for target in Self::read(query).targets {
            if !self.targets.contains(&target) {
                self.targets.push(target);
            }
        }
        self
    }

    /// From a form as browsers send it, or the query of an address. What is not said stays as it is by default.
    pub fn read(encoded: &[u8]) -> Self {
        let mut draft = Self::default();
        for (field, value) in form_urlencoded::parse(encoded) {
            let value = value.trim().to_owned();
            match field.as_ref() {
                "name" => draft.name = value,
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
                "warm-up" => draft.warm_up = value,
                "repeat" => draft.repeat = value,
                "until" => draft.until = value,
                "at-most" => draft.at_most = value,
                "retries" => draft.retries = value,
                "seed" => draft.seed = value,
                "agent" => draft.choose(value),
                "agent-label" => draft.agent_label = value,
                "spread" => draft.spread = value == SPREAD,
                "load-from" => draft.load_from.push(value),
                other => {
                    if let Some(name) = other.strip_prefix("set.") {
                        draft.parameters.insert(name.to_owned(), value);
                    }
                }
            }
        }
        draft
    }

    /// The form has one choice for agents and labels: a label stands behind `label:`, and an agent whose name begins like
    /// this behind `agent:`.
    fn choose(&mut self, value: String) {
        (self.agent, self.agent_label) = match (value.strip_prefix("label:"), value.strip_prefix("agent:")) {
            (Some(label), _) => (String::new(), label.to_owned()),
            (None, Some(name)) => (name.to_owned(), String::new()),
            (None, None) => (value, String::new()),
        };
    }

    /// What chooses an agent of this name.
    pub fn choice_of(name: &str) -> String {
        let is_odd = name.starts_with("label:") || name.starts_with("agent:");
        if is_odd { format!("agent:{name}") } else { name.to_owned() }
    }

    /// What would make this plan, in another order.
    pub fn of(plan: &Plan) -> Self {
        let usual = Self::default();
        Self {
            name: plan.name.clone().unwrap_or_default(),
            targets: plan.targets.clone(),
            against: plan.against.clone().unwrap_or_default(),
            sizes: plan.sizes.clone(),
            scenario: plan.scenario.clone(),
            parameters: plan.parameters.clone(),
            warm_up: warm_up_text(plan.warm_up_s, plan.warm_up_auto),
            repeat: plan.repetitions.to_string(),
            until: plan.until.map(|until| share_text(until.narrower_than)).unwrap_or_default(),
            at_most: plan.until.map_or_else(|| usual.at_most.clone(), |until| until.at_most.to_string()),
            retries: plan.retries.to_string(),
            agent: plan.agent.clone().unwrap_or_default(),
            agent_label: plan.agent_label.clone().unwrap_or_default(),
            spread: plan.spread,
            load_from: plan.generators.clone(),
            ..match &plan.knee {
                Some(knee) => usual.with_knee(knee),
                None => usual.with_loads(&plan.loads),
            }
        }
    }

    /// The same as the query of an address.
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
        query.append_pair("warm-up", &self.warm_up).append_pair("repeat", &self.repeat);
        if !self.until.is_empty() {
            query.append_pair("until", &self.until).append_pair("at-most", &self.at_most);
        }
        query.append_pair("retries", &self.retries);
        query.extend_pairs(self.load_from.iter().map(|name| ("load-from", name)));
        if self.spread {
            query.append_pair("spread", SPREAD);
        }
        let agent = Self::choice_of(&self.agent);
        let named = [("seed", &self.seed), ("agent", &agent), ("agent-label", &self.agent_label), ("name", &self.name)];
        query.extend_pairs(named.into_iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }

    /// The plan that it says, for a scenario with these defaults; else what is wrong, all of it.
    pub fn plan(&self, defaults: &BTreeMap<String, String>) -> Result<Plan, Faults> {
        let (load, mut faults) = match self.how_hard() {
            Ok(load) => (Some(load), Faults::default()),
            Err(faults) => (None, faults),
        };
        let repetitions = number("repeat", &self.repeat, &mut faults);
        let warm_up = warm_up(&self.warm_up, &mut faults);
        let until = self.until(&mut faults);
        let retries = number("retries", &self.retries, &mut faults);
        let seed = if self.seed.is_empty() { Some(None) } else { number("seed", &self.seed, &mut faults).map(Some) };
        let (
            Some((loads, knee)),
            Some(repetitions),
            Some((warm_up_s, warm_up_auto)),
            Some(until),
            Some(retries),
            Some(seed),
        ) = (load, repetitions, warm_up, until, retries, seed)
        else {
            return Err(faults);
        };
        let differs = |(name, value): &(&String, &String)| defaults.get(*name).is_some_and(|usual| usual != *value);
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
            warm_up_s,
            warm_up_auto,
            repetitions,
            until,
            retries,
            seed,
            agent: text(&self.agent),
            agent_label: text(&self.agent_label),
            spread: self.spread,
            generators: self.load_from.clone(),
        })
    }

    /// Until when it is repeated; none outside where that can't be read.
    #[expect(clippy::option_option, reason = "none inside: as often as is said")]
    fn until(&self, faults: &mut Faults) -> Option<Option<Until>> {
        if self.until.is_empty() || self.load == LoadBy::Knee {
            return Some(None);
        }
        let narrower_than = share(&self.until).map_err(|sentence| faults.add("until", &sentence)).ok();
        let at_most = number("at-most", &self.at_most, faults);
        Some(Some(Until { narrower_than: narrower_than?, at_most: at_most? }))
    }
}

fn number(field: &'static str, text: &str, faults: &mut Faults) -> Option<u32> {
    let parsed = text.parse::<u32>().ok();
    if parsed.is_none() {
        faults.add(field, "a whole number, such as 10");
    }
    parsed
}

/// The word for a warm-up until the target is steady.
pub const AUTO: &str = "auto";

/// A warm-up as the form and `run new` write it.
pub fn warm_up_text(seconds: f64, is_auto: bool) -> String {
    if is_auto { AUTO.to_owned() } else { written(seconds) }
}

/// How long, and whether until the target is steady.
fn warm_up(text: &str, faults: &mut Faults) -> Option<(f64, bool)> {
    if text.trim() == AUTO {
        return Some((default_warm_up_s(), true));
    }
    let parsed = seconds(text);
    if parsed.is_none() {
        faults.add("warm-up", "a time, such as 10s, 500ms or 1m30s, or auto");
    }
    Some((parsed?, false))
}

fn time(field: &'static str, text: &str, faults: &mut Faults) -> Option<f64> {
    let parsed = seconds(text);
    if parsed.is_none() {
        faults.add(field, "a time, such as 10s, 500ms or 1m30s");
    }
    parsed
}

/// Seconds as `run new` reads them, or a bare number of them.
fn seconds(text: &str) -> Option<f64> {
    let bare = || text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    let words = || text.parse::<jiff::SignedDuration>().ok().map(|duration| duration.as_secs_f64());
    bare().or_else(words).filter(|seconds| *seconds >= 0.0)
}

/// Seconds as `run new` reads them.
pub fn written(seconds: f64) -> String {
    format!("{seconds}s")
}
