//! What somebody has typed into the form of a new run, whether it makes sense or not. Pure.

mod load;

use std::collections::BTreeMap;

pub use load::LoadBy;
use url::form_urlencoded;

use super::{Plan, default_repetitions, default_warm_up_s};

/// The form as it was filled in. Fields are called as the flags of `brewbench run new` are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What to call it; empty for a name that is made up.
    pub name: String,
    /// Names of targets.
    pub targets: Vec<String>,
    /// Names of machine sizes.
    pub sizes: Vec<String>,
    /// Name of a scenario.
    pub scenario: String,
    /// Parameters, those of other scenarios among them.
    pub parameters: BTreeMap<String, String>,
    /// By what the load is given.
    pub load: LoadBy,
    /// Virtual users.
    pub vus: String,
    /// Iterations per second.
    pub rate: String,
    /// How long a constant load lasts.
    pub duration: String,
    /// Virtual users in stages.
    pub vus_stages: String,
    /// Iterations per second in stages.
    pub rate_stages: String,
    /// Virtual users that keep a rate up; empty for as many as are usual.
    pub max_vus: String,
    /// Warm-up.
    pub warm_up: String,
    /// Repetitions.
    pub repeat: String,
    /// An agent's name; empty for any that can.
    pub agent: String,
}

/// What is wrong, by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<&'static str, String>);

/// The fields of the form, and what a refusal of the API calls them.
const FIELDS: [(&str, &str); 9] = [
    ("target", "target"),
    ("targets", "target"),
    ("size", "size"),
    ("sizes", "size"),
    ("scenario", "scenario"),
    ("parameters", "set"),
    ("warm_up_s", "warm-up"),
    ("repetitions", "repeat"),
    ("agent", "agent"),
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
            warm_up: written(default_warm_up_s()),
            repeat: default_repetitions().to_string(),
            agent: String::new(),
        }
    }
}

impl Draft {
    /// From a form as browsers send it, or the query of an address. What is not said stays as it is by default.
    pub fn read(encoded: &[u8]) -> Self {
        let mut draft = Self::default();
        for (field, value) in form_urlencoded::parse(encoded) {
            let value = value.trim().to_owned();
            match field.as_ref() {
                "name" => draft.name = value,
                "target" => draft.targets.push(value),
                "size" => draft.sizes.push(value),
                "scenario" => draft.scenario = value,
                "load" => draft.load = LoadBy::ALL.into_iter().find(|by| by.as_str() == value).unwrap_or(LoadBy::Vus),
                "vus" => draft.vus = value,
                "rate" => draft.rate = value,
                "duration" => draft.duration = value,
                "vus-stages" => draft.vus_stages = value,
                "rate-stages" => draft.rate_stages = value,
                "max-vus" => draft.max_vus = value,
                "warm-up" => draft.warm_up = value,
                "repeat" => draft.repeat = value,
                "agent" => draft.agent = value,
                other => {
                    if let Some(name) = other.strip_prefix("set.") {
                        draft.parameters.insert(name.to_owned(), value);
                    }
                }
            }
        }
        draft
    }

    /// What would make this plan.
    pub fn of(plan: &Plan) -> Self {
        Self {
            name: plan.name.clone().unwrap_or_default(),
            targets: plan.targets.clone(),
            sizes: plan.sizes.clone(),
            scenario: plan.scenario.clone(),
            parameters: plan.parameters.clone(),
            warm_up: written(plan.warm_up_s),
            repeat: plan.repetitions.to_string(),
            agent: plan.agent.clone().unwrap_or_default(),
            ..Self::default().with_load(&plan.load)
        }
    }

    /// The same as the query of an address.
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.targets.iter().map(|name| ("target", name)));
        query.extend_pairs(self.sizes.iter().map(|name| ("size", name)));
        query.append_pair("scenario", &self.scenario);
        query.extend_pairs(self.parameters.iter().map(|(name, value)| (format!("set.{name}"), value)));
        query.append_pair("load", self.load.as_str());
        match self.load {
            LoadBy::Vus => query.append_pair("vus", &self.vus).append_pair("duration", &self.duration),
            LoadBy::VusStages => query.append_pair("vus-stages", &self.vus_stages),
            LoadBy::Rate => query.append_pair("rate", &self.rate).append_pair("duration", &self.duration),
            LoadBy::RateStages => query.append_pair("rate-stages", &self.rate_stages),
            LoadBy::Script => &mut query,
        };
        if matches!(self.load, LoadBy::Rate | LoadBy::RateStages) && !self.max_vus.is_empty() {
            query.append_pair("max-vus", &self.max_vus);
        }
        query.append_pair("warm-up", &self.warm_up).append_pair("repeat", &self.repeat);
        let named = [("agent", &self.agent), ("name", &self.name)];
        query.extend_pairs(named.into_iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }

    /// The plan that it says, for a scenario with these defaults; else what is wrong, all of it.
    pub fn plan(&self, defaults: &BTreeMap<String, String>) -> Result<Plan, Faults> {
        let (load, mut faults) = match self.load() {
            Ok(load) => (Some(load), Faults::default()),
            Err(faults) => (None, faults),
        };
        let repetitions = number("repeat", &self.repeat, &mut faults);
        let warm_up = time("warm-up", &self.warm_up, &mut faults);
        let (Some(load), Some(repetitions), Some(warm_up_s)) = (load, repetitions, warm_up) else {
            return Err(faults);
        };
        let differs = |(name, value): &(&String, &String)| defaults.get(*name).is_some_and(|usual| usual != *value);
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Ok(Plan {
            name: text(&self.name),
            targets: self.targets.clone(),
            sizes: self.sizes.clone(),
            scenario: self.scenario.clone(),
            parameters: self
                .parameters
                .iter()
                .filter(differs)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            load,
            warm_up_s,
            repetitions,
            agent: text(&self.agent),
        })
    }
}

fn number(field: &'static str, text: &str, faults: &mut Faults) -> Option<u32> {
    let parsed = text.parse::<u32>().ok();
    if parsed.is_none() {
        faults.add(field, "a whole number, such as 10");
    }
    parsed
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

#[cfg(test)]
mod tests {
    use brewbench_agent::wire::load::Load;

    use super::*;
    use crate::runs::load::{
        LoadBody,
        tests::{rate, vus, vus_stages},
    };

    fn draft(query: &str) -> Draft {
        Draft::read(query.as_bytes())
    }

    #[test]
    fn what_is_typed_becomes_a_plan_and_a_plan_the_same_form() {
        let query = "target=a&target=b+c&size=2%2F4GiB&scenario=single-file&set.PAYLOAD=10k&vus=20&duration=1m30s&\
                     warm-up=0.5&repeat=5&agent=rack&name=x";
        let defaults = BTreeMap::from([("PAYLOAD".to_owned(), "1k".to_owned())]);
        let plan = draft(query).plan(&defaults).expect("a plan");
        assert_eq!((plan.targets.as_slice(), &plan.load), (&["a".to_owned(), "b c".to_owned()][..], &vus(20, 90.0)));
        assert_eq!((plan.warm_up_s, plan.repetitions), (0.5, 5));
        assert_eq!(plan.parameters.get("PAYLOAD").map(String::as_str), Some("10k"));
        let again = draft(&Draft::of(&plan).query());
        assert_eq!(again.plan(&defaults).expect("a plan"), plan);
        let few = LoadBody::Rate { rate: 50, duration_s: 1.5, max_vus: Some(7) }.try_into().expect("a load");
        let stages = draft("load=rate-stages&rate-stages=500ms:10,2s:0&max-vus=3").load().expect("a load");
        for load in [Load::Script, rate(2_000, 5.0), few, vus_stages("5s:10,500ms:50"), stages] {
            let plan = Plan { load, agent: None, ..plan.clone() };
            assert_eq!(draft(&Draft::of(&plan).query()).plan(&defaults).expect("a plan"), plan);
        }
    }

    #[test]
    fn parameters_that_say_the_default_or_belong_to_another_scenario_are_left_out() {
        let defaults = BTreeMap::from([("N".to_owned(), "1".to_owned())]);
        let plan = draft("set.N=1&set.OTHER=2").plan(&defaults).expect("a plan");
        assert_eq!(plan.parameters, BTreeMap::new());
    }

    #[test]
    fn everything_that_can_not_be_read_is_told_at_once_by_its_field() {
        let faults = draft("vus=many&duration=soon&warm-up=-1s&repeat=").plan(&BTreeMap::new()).expect_err("faults");
        for field in ["vus", "duration", "warm-up", "repeat"] {
            assert!(faults.of(field).is_some(), "{field}: {faults:?}");
        }
        let script = draft("load=script&vus=many&duration=soon").plan(&BTreeMap::new());
        assert!(script.is_ok(), "nobody asks for them: {script:?}");
        assert!(draft("duration=inf").plan(&BTreeMap::new()).is_err());
        let table = [
            ("vus=0", "vus", "between 1 and 100000"),
            ("duration=0.5s", "duration", "between 1 and 86400 seconds"),
            ("load=rate&rate=0", "rate", "between 1 and 1000000"),
            ("load=rate&rate=5&max-vus=0", "max-vus", "between 1 and 100000"),
            ("load=rate&rate=5&max-vus=few", "max-vus", "a whole number, such as 10"),
            ("load=vus-stages&vus-stages=5s", "vus-stages", "stage 1 is \"5s\": write it as 10s:50"),
            ("load=rate-stages&rate-stages=5s:0", "rate-stages", "none of them goes above 0"),
        ];
        for (query, field, sentence) in table {
            let faults = draft(query).load().expect_err(query);
            assert_eq!(faults.of(field), Some(sentence), "{query}: {faults:?}");
        }
    }

    #[test]
    fn a_refusal_stands_at_its_field_and_what_has_none_at_the_top() {
        let mut faults = Faults::default();
        faults.refused("warm_up_s: between 0 and 86400 seconds");
        faults.refused("this makes 90000 runs; at most 10000 go into one experiment");
        assert_eq!(faults.of("warm-up"), Some("between 0 and 86400 seconds"));
        assert_eq!(faults.general(), Some("this makes 90000 runs; at most 10000 go into one experiment"));
    }
}
