//! `/experiments/new`: the form for a new run, and its forecast.

pub mod command;
pub mod draft;
pub mod forecast;
pub mod form_options;
pub mod load_sketch;
pub mod pages;
pub mod preset;

use askama::Template;
use brewbench_wire::{load::Shape, messages::ScriptReport, variables::is_secret};
use url::form_urlencoded;

use crate::{
    auth::model::Scope,
    experiments::{
        new::{
            draft::{Draft, Faults, LoadBy},
            forecast::{Forecast, QueuePosition},
            form_options::Offer,
            load_sketch::LoadSketch,
            preset::PresetChoice,
        },
        plan::default_retries,
        plan_fields::{FIELDS, SCRIPT_SCENARIO_FLAG},
    },
};

/// The presets above the form. Its root is `#presets`.
#[derive(Debug, Template)]
#[template(path = "experiments/_presets.html")]
pub struct PresetsPart<'a> {
    form: &'a Form,
}

/// The input fields. Its root is `#fields`.
#[derive(Debug, Template)]
#[template(path = "experiments/_fields.html")]
pub struct FieldsPart<'a> {
    form: &'a Form,
}

/// The forecast. Its root is `#forecast`.
#[derive(Debug, Template)]
#[template(path = "experiments/_forecast.html")]
pub struct ForecastPart<'a> {
    form: &'a Form,
}

/// One parameter of the chosen scenario.
#[derive(Debug)]
pub struct Parameter {
    name: String,
    value: String,
    usual: String,
}

impl Parameter {
    /// Whether its value is not shown.
    fn is_secret(&self) -> bool {
        is_secret(&self.name)
    }
}

/// The filled-in form.
#[derive(Debug)]
pub struct Form {
    draft: Draft,
    offer: Offer,
    parameters: Vec<Parameter>,
    faults: Faults,
    /// Present if the plan is valid.
    forecast: Option<Forecast>,
    place: QueuePosition,
    presets: Vec<PresetChoice>,
    scope: Scope,
    agents_connected: usize,
    /// Names of baselines.
    baselines: Vec<String>,
}

/// Which faults are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownFaults {
    /// Not those of targets and sizes that have not been chosen yet.
    Typed,
    /// All faults.
    All,
}

impl Form {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// Returns the baselines to choose from, including the one named in the URL.
    fn againsts(&self) -> Vec<&str> {
        let named = Some(&self.draft.against).filter(|name| !name.is_empty() && !self.baselines.contains(name));
        self.baselines.iter().chain(named).map(String::as_str).collect()
    }

    /// Returns the URL of the form completed with the settings of the baseline.
    fn filled_in(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("against", &self.draft.against);
        query.extend_pairs(self.draft.targets.iter().map(|name| ("target", name)));
        format!("/experiments/new?{}", query.finish())
    }

    /// Whether the advanced options are shown: one of them has a fault or is set.
    fn is_advanced(&self) -> bool {
        let Draft { against, name, seed, agent, agent_label, spread, load_from, generators, profile, .. } = &self.draft;
        let is_set = [against, name, seed, agent, agent_label, generators, profile].iter().any(|text| !text.is_empty());
        let fields = [
            "against",
            "agent",
            "spread",
            "load-from",
            "generators",
            "profile",
            "until",
            "at-most",
            "retries",
            "seed",
            "name",
        ];
        let mut fields = fields.into_iter().chain(FIELDS.iter().map(|field| field.flag));
        is_set || *spread || !load_from.is_empty() || fields.any(|field| self.faults.of(field).is_some())
    }

    /// Returns why the runs can't be spread over several agents.
    fn spread_obstacle(&self) -> Option<&'static str> {
        let Draft { spread, agent, until, load, load_from, .. } = &self.draft;
        match (spread, load) {
            (true, _) => None,
            (_, LoadBy::Knee) => Some("a knee search stays on one agent"),
            _ if !agent.is_empty() => Some("one agent is chosen"),
            _ if !until.is_empty() => Some("adaptive repetitions stay on one agent"),
            _ if !load_from.is_empty() => Some("load generators are chosen"),
            _ => None,
        }
    }

    /// Summarizes the advanced options: what differs from the defaults.
    fn advanced(&self) -> String {
        let Draft { until, at_most, retries, agent, agent_label, load, profile, .. } = &self.draft;
        let is_fixed = until.is_empty() || *load == LoadBy::Knee;
        let plan = self.draft.with_fields(&mut Faults::default());
        let fields = FIELDS.iter().filter_map(|field| Some((field.label, (field.get)(&plan)?)));
        let others = [
            ("Agent", if agent.is_empty() { agent_label.clone() } else { agent.clone() }),
            ("Stop at", if is_fixed { String::new() } else { format!("±{until}, at most {at_most} repetitions") }),
            ("Retries", if *retries == default_retries().to_string() { String::new() } else { retries.clone() }),
            ("Profile", if profile.is_empty() { String::new() } else { "yes".to_owned() }),
        ];
        let changed = fields.chain(others).filter(|(_, value)| !value.is_empty());
        let changed: Vec<String> = changed.map(|(label, value)| format!("{label}: {value}")).collect();
        if changed.is_empty() { "all defaults".to_owned() } else { changed.join(" · ") }
    }

    /// Describes what of the script the chosen load replaces; none if nothing.
    fn replaced(&self) -> Option<String> {
        let ScriptReport { scenarios, sets_load, .. } = &self.offer.script;
        let chosen = self.draft.text(SCRIPT_SCENARIO_FLAG);
        let others = match scenarios.as_slice() {
            _ if !sets_load || self.draft.load == LoadBy::Script => return None,
            [] => "",
            [_] => "; its function, env and tags stay",
            _ if !chosen.is_empty() => "; the function, env and tags of the chosen one stay",
            _ => "; choose one under Advanced if their functions, env or tags differ",
        };
        let load =
            if scenarios.is_empty() { "load".to_owned() } else { format!("scenarios: {}", scenarios.join(", ")) };
        Some(format!("replaces the script’s {load}{others}"))
    }

    /// Sketches the load; of several loads the highest.
    fn drawing(&self) -> Option<LoadSketch> {
        let (loads, _) = self.draft.loads().ok()?;
        let highest = loads.iter().max_by_key(|load| load.shape().map(Shape::peak))?;
        LoadSketch::new(highest)
    }

    /// Returns the fields of the load: CSS classes of their choices, name, label and value.
    fn levels(&self) -> [(&'static str, &'static str, &'static str, &str); 9] {
        let Draft { vus, rate, duration, vus_stages, rate_stages, max_vus, .. } = &self.draft;
        let Draft { knee, objective, precision, .. } = &self.draft;
        [
            ("by-vus", "vus", "Virtual users", vus),
            ("by-vus-stages", "vus-stages", "Stages (virtual users)", vus_stages),
            ("by-rate", "rate", "Iterations per second", rate),
            ("by-rate-stages", "rate-stages", "Stages (iterations per second)", rate_stages),
            ("by-knee", "knee", "Range of rates", knee),
            ("by-knee", "objective", "Objective", objective),
            ("by-vus by-rate by-knee", "duration", "Duration", duration),
            ("by-rate by-rate-stages by-knee", "max-vus", "Maximum virtual users", max_vus),
            ("by-knee", "precision", "Precision", precision),
        ]
    }

    /// Returns the hint below a field of the load.
    fn hint(name: &str) -> &'static str {
        match name {
            "vus" => "one, or several: 1,2,4 or 1..256x2 (doubling)",
            "rate" => "one, or several: 500,1000 or 1000..20000+1000 (steps of 1000)",
            "vus-stages" | "rate-stages" => "duration and target level of each stage: 5s:10,10s:50",
            "max-vus" => "default: a tenth of the rate, 10 to 1,000; all are created before the measurement starts",
            "knee" => "lowest and highest rate, iterations/s: 1000..20000",
            "objective" => "conditions that must hold: p99<50ms, failures<0.1%",
            "precision" => "maximum distance between the rates around the knee",
            _ => "",
        }
    }

    /// Describes why the form can't be submitted.
    fn missing(&self) -> String {
        if self.offer.targets.is_empty() {
            return "No agent has offered a target yet.".to_owned();
        }
        match (self.draft.targets.is_empty(), self.draft.sizes.is_empty()) {
            (true, true) => "Choose at least one target and one machine size.".to_owned(),
            (true, false) => "Choose at least one target.".to_owned(),
            (false, true) => "Choose at least one machine size.".to_owned(),
            (false, false) => "Fix the marked fields to submit.".to_owned(),
        }
    }
}
