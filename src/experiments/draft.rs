//! What somebody has typed into the form of a new run, whether it makes sense or not. Pure.

use std::collections::BTreeMap;

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
    /// Who says how hard.
    pub load: LoadBy,
    /// Virtual users.
    pub vus: String,
    /// Measured time.
    pub duration: String,
    /// Warm-up.
    pub warm_up: String,
    /// Repetitions.
    pub repeat: String,
    /// An agent's name; empty for any that can.
    pub agent: String,
}

/// Who says how hard the load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBy {
    /// The form, by virtual users and a duration.
    Form,
    /// The script's own options.
    Script,
}

/// What is wrong, by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<&'static str, String>);

/// The fields of the form, and what a refusal of the API calls them.
const FIELDS: [(&str, &str); 11] = [
    ("target", "target"),
    ("targets", "target"),
    ("size", "size"),
    ("sizes", "size"),
    ("scenario", "scenario"),
    ("parameters", "set"),
    ("vus", "vus"),
    ("duration_s", "duration"),
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
            load: LoadBy::Form,
            vus: "10".to_owned(),
            duration: "10s".to_owned(),
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
                "load" => draft.load = if value == "script" { LoadBy::Script } else { LoadBy::Form },
                "vus" => draft.vus = value,
                "duration" => draft.duration = value,
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
        let usual = Self::default();
        Self {
            name: plan.name.clone().unwrap_or_default(),
            targets: plan.targets.clone(),
            sizes: plan.sizes.clone(),
            scenario: plan.scenario.clone(),
            parameters: plan.parameters.clone(),
            load: if plan.vus.is_some() { LoadBy::Form } else { LoadBy::Script },
            vus: plan.vus.map_or(usual.vus, |vus| vus.to_string()),
            duration: plan.duration_s.map_or(usual.duration, written),
            warm_up: written(plan.warm_up_s),
            repeat: plan.repetitions.to_string(),
            agent: plan.agent.clone().unwrap_or_default(),
        }
    }

    /// The same as the query of an address.
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.targets.iter().map(|name| ("target", name)));
        query.extend_pairs(self.sizes.iter().map(|name| ("size", name)));
        query.append_pair("scenario", &self.scenario);
        query.extend_pairs(self.parameters.iter().map(|(name, value)| (format!("set.{name}"), value)));
        match self.load {
            LoadBy::Script => query.append_pair("load", "script"),
            LoadBy::Form => query.append_pair("vus", &self.vus).append_pair("duration", &self.duration),
        };
        query.append_pair("warm-up", &self.warm_up).append_pair("repeat", &self.repeat);
        let named = [("agent", &self.agent), ("name", &self.name)];
        query.extend_pairs(named.into_iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }

    /// The plan that it says, for a scenario with these defaults; else what is wrong, all of it.
    pub fn plan(&self, defaults: &BTreeMap<String, String>) -> Result<Plan, Faults> {
        let mut faults = Faults::default();
        let mut number = |field, text: &str| {
            let parsed = text.parse::<u32>().ok();
            if parsed.is_none() {
                faults.add(field, "a whole number, such as 10");
            }
            parsed
        };
        let by_form = self.load == LoadBy::Form;
        let vus = if by_form { number("vus", &self.vus) } else { None };
        let repetitions = number("repeat", &self.repeat);
        let mut time = |field, text: &str| {
            let parsed = seconds(text);
            if parsed.is_none() {
                faults.add(field, "a time, such as 10s, 500ms or 1m30s");
            }
            parsed
        };
        let duration = if by_form { time("duration", &self.duration) } else { None };
        let warm_up = time("warm-up", &self.warm_up);
        let (Some(repetitions), Some(warm_up_s), true) = (repetitions, warm_up, faults.0.is_empty()) else {
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
            vus,
            duration_s: duration,
            warm_up_s,
            repetitions,
            agent: text(&self.agent),
        })
    }
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
    use super::*;

    fn draft(query: &str) -> Draft {
        Draft::read(query.as_bytes())
    }

    #[test]
    fn what_is_typed_becomes_a_plan_and_a_plan_the_same_form() {
        let query = "target=a&target=b+c&size=2%2F4GiB&scenario=single-file&set.PAYLOAD=10k&vus=20&duration=1m30s&\
                     warm-up=0.5&repeat=5&agent=rack&name=x";
        let defaults = BTreeMap::from([("PAYLOAD".to_owned(), "1k".to_owned())]);
        let plan = draft(query).plan(&defaults).expect("a plan");
        assert_eq!((plan.targets.as_slice(), plan.vus), (&["a".to_owned(), "b c".to_owned()][..], Some(20)));
        assert_eq!((plan.duration_s, plan.warm_up_s, plan.repetitions), (Some(90.0), 0.5, 5));
        assert_eq!(plan.parameters.get("PAYLOAD").map(String::as_str), Some("10k"));
        let again = draft(&Draft::of(&plan).query());
        assert_eq!(again.plan(&defaults).expect("a plan"), plan);
        let script = Plan { vus: None, duration_s: None, agent: None, ..plan };
        assert_eq!(draft(&Draft::of(&script).query()).plan(&defaults).expect("a plan"), script);
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
    }

    #[test]
    fn a_refusal_stands_at_its_field_and_what_has_none_at_the_top() {
        let mut faults = Faults::default();
        faults.refused("duration_s: between 1 and 86400 seconds");
        faults.refused("this makes 90000 runs; at most 10000 go into one experiment");
        assert_eq!(faults.of("duration"), Some("between 1 and 86400 seconds"));
        assert_eq!(faults.general(), Some("this makes 90000 runs; at most 10000 go into one experiment"));
    }
}
