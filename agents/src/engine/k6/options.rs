//! The options under which k6 runs a scenario: those of its script, with the load of a run. Pure.
//!
//! - A load that replaces the script's own runs the function of the script's scenario under its name, with its `env`
//!   and its tags. If the script has several scenarios that differ, one must be chosen.
//! - k6's summary adds up the requests of the load and those of `setup()` and `teardown()`. So if a script has these,
//!   its scenarios get a tag, and thresholds without a condition make k6 report the load alone.

use std::time::Duration;

use brewbench_wire::load::{Form, Load, MIN_DURATION, Stage};
use brewbench_wire::reports::load;
use brewbench_wire::reports::protocol::SUCCESSFUL_CALLS;
use brewbench_wire::run_spec::RunSpec;
use serde_json::{Map, Value, json};

use super::exports::{Exports, LOAD};
use super::{GRACEFUL_STOP, Round, scale};

/// What the text of a script tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traits {
    /// It may read the names of scenarios, and so do other work in each.
    pub reads_names: bool,
    /// It may make gRPC calls.
    pub calls_grpc: bool,
}

/// Returns the options of a round of a run. The error is a sentence.
pub fn options(exports: &Exports, spec: &RunSpec, round: Round, traits: Traits) -> Result<Map<String, Value>, String> {
    let mut own = exports.options.clone().unwrap_or_default();
    let mut names = exports.scenarios.clone();
    if let Some(only) = &spec.script_scenario {
        own = chosen(own, &names, only)?;
        names = vec![only.clone()];
    }
    if let Some(scale) = spec.scale {
        scale::scale(&mut own, scale)?;
    }
    if let Some(load) = scenario((spec.load(), spec.longest_warm_up()), round) {
        own = replaced(own, &names, load, traits.reads_names)?;
    }
    let has_setup = exports.has_setup();
    let mut options = if has_setup { tagged(own) } else { own };
    if matches!(round, Round::WarmUp) {
        options.remove("thresholds");
    } else if has_setup || traits.calls_grpc {
        let alone = load::sub_metrics().filter(|_| has_setup);
        let calls = traits.calls_grpc.then(|| SUCCESSFUL_CALLS.to_owned());
        let alone = alone.chain(calls).map(|name| (name, json!([])));
        let thresholds = options.entry("thresholds").or_insert(Value::Null);
        let kept = thresholds.as_object().cloned().unwrap_or_default();
        *thresholds = kept.into_iter().chain(alone).collect();
    }
    Ok(options)
}

/// Returns k6's scenario for a round of a load with this warm-up; `None` if the script sets its load. The warm-up has
/// the highest level for the whole time, so that caches, pools and threads have grown before the measurement.
pub fn scenario((load, warm_up): (&Load, Duration), round: Round) -> Option<Value> {
    let load = match round {
        Round::WarmUp => load.at_peak(warm_up.max(MIN_DURATION)),
        Round::Measure => load.clone(),
    };
    let mut scenario = match &load {
        Load::Script => return None,
        Load::Closed(closed) => match closed.vus().form() {
            Form::Constant { level, duration_ms } => vus(*level, *duration_ms),
            Form::Stages(stages) => json!({"executor": "ramping-vus", "startVUs": 0, "stages": corners(stages)}),
        },
        Load::Open(open) => match open.rate().form() {
            Form::Constant { level, duration_ms } => rate(*level, *duration_ms, open.max_vus()),
            Form::Stages(stages) => with_vus(
                json!({"executor": "ramping-arrival-rate", "startRate": 0, "stages": corners(stages)}),
                open.max_vus(),
            ),
        },
    };
    scenario["gracefulStop"] = milliseconds(u64::try_from(GRACEFUL_STOP.as_millis()).unwrap_or(u64::MAX)).into();
    Some(scenario)
}

fn vus(vus: u32, duration_ms: u64) -> Value {
    json!({"executor": "constant-vus", "vus": vus, "duration": milliseconds(duration_ms)})
}

fn rate(rate: u32, duration_ms: u64, max_vus: u32) -> Value {
    let scenario = json!({"executor": "constant-arrival-rate", "rate": rate, "duration": milliseconds(duration_ms)});
    with_vus(scenario, max_vus)
}

fn with_vus(mut scenario: Value, max_vus: u32) -> Value {
    scenario["timeUnit"] = "1s".into();
    scenario["preAllocatedVUs"] = max_vus.into();
    scenario["maxVUs"] = max_vus.into();
    scenario
}

fn corners(stages: &[Stage]) -> Vec<Value> {
    let corner = |stage: &Stage| json!({"duration": milliseconds(stage.duration_ms), "target": stage.target});
    stages.iter().map(corner).collect()
}

fn milliseconds(milliseconds: u64) -> String {
    format!("{milliseconds}ms")
}

/// Keeps one of the script's scenarios, which starts at once.
fn chosen(mut own: Map<String, Value>, names: &[String], only: &str) -> Result<Map<String, Value>, String> {
    let found = own.get("scenarios").and_then(|all| all.get(only)).cloned();
    let Some(mut scenario) = found else {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(format!("the script has no scenario {only:?}; it has {known}"));
    };
    if let Some(fields) = scenario.as_object_mut() {
        fields.remove("startTime");
    }
    own.insert("scenarios".to_owned(), json!({only: scenario}));
    Ok(own)
}

/// Replaces the script's load, for the function, name, `env` and tags of its scenario. Several of them must agree.
fn replaced(
    mut own: Map<String, Value>,
    names: &[String],
    mut load: Value,
    reads_names: bool,
) -> Result<Map<String, Value>, String> {
    let of = |name: &String, field: &str| own.get("scenarios").map(|all| &all[name][field]).cloned();
    let needs = |name: &String| {
        let sorted = |field| of(name, field).and_then(|map| map.as_object().cloned()).unwrap_or_default();
        let exec = of(name, "exec").and_then(|exec| exec.as_str().map(str::to_owned));
        let name = reads_names.then(|| name.clone());
        json!([name, exec.unwrap_or_else(|| "default".to_owned()), sorted("env"), sorted("tags")])
    };
    let first = names.first();
    if first.is_some_and(|first| names.iter().any(|name| needs(name) != needs(first))) {
        let (count, all) = (names.len(), names.join(", "));
        return Err(format!(
            "the script has {count} scenarios that differ ({all}): choose one of them, or run it with its own load"
        ));
    }
    for field in ["exec", "env", "tags"] {
        if let Some(value) = first.and_then(|name| of(name, field)).filter(|value| !value.is_null()) {
            load[field] = value;
        }
    }
    let name = first.map_or("default", String::as_str);
    own.retain(|option, _| !LOAD.contains(&option.as_str()));
    own.insert("scenarios".to_owned(), json!({name: load}));
    Ok(own)
}

/// Tags the script's own load. k6 makes a scenario `default` from options without one, which has to be done here for
/// its tag. Options that contradict each other are left to k6.
fn tagged(mut own: Map<String, Value>) -> Map<String, Value> {
    let given = |option: &str| own.get(option).filter(|value| !value.is_null()).cloned();
    let scenarios = given("scenarios").and_then(|all| all.as_object().cloned()).filter(|all| !all.is_empty());
    let stages = given("stages").and_then(|all| all.as_array().cloned()).unwrap_or_default();
    let (vus, duration, iterations) = (given("vus"), given("duration"), given("iterations"));
    let is_timed = iterations.is_some() || duration.is_some();
    if [scenarios.is_some(), !stages.is_empty(), is_timed].into_iter().filter(|is| *is).count() > 1 {
        return own;
    }
    let default = || {
        if iterations.is_some() {
            json!({"executor": "shared-iterations", "vus": vus, "iterations": iterations, "maxDuration": duration})
        } else if duration.is_some() {
            json!({"executor": "constant-vus", "vus": vus, "duration": duration})
        } else if stages.is_empty() {
            json!({"executor": "per-vu-iterations"})
        } else {
            let timed: Vec<&Value> = stages.iter().filter(|stage| !stage["duration"].is_null()).collect();
            json!({"executor": "ramping-vus", "startVUs": vus, "stages": timed})
        }
    };
    let mut scenarios = scenarios.unwrap_or_else(|| Map::from_iter([("default".to_owned(), default())]));
    scenarios.values_mut().for_each(tag);
    own.retain(|option, _| !LOAD.contains(&option.as_str()));
    own.insert("scenarios".to_owned(), scenarios.into());
    own
}

/// Adds the tag of the load to a scenario.
fn tag(scenario: &mut Value) {
    let [name, value] = load::TAG;
    let mut tags = scenario["tags"].as_object().cloned().unwrap_or_default();
    tags.insert(name.to_owned(), value.into());
    scenario["tags"] = tags.into();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use brewbench_wire::load::{Closed, Open};

    use super::*;

    fn exports(functions: &[&str], options: &Value) -> Exports {
        let options = options.as_object().cloned();
        let scenarios = options.as_ref().and_then(|options| options.get("scenarios")?.as_object().cloned());
        Exports {
            scenarios: scenarios.unwrap_or_default().keys().cloned().collect(),
            functions: functions.iter().map(|&name| name.to_owned()).collect(),
            names: BTreeSet::new(),
            options,
        }
    }

    fn two_vus() -> Load {
        Load::Closed(Closed::new(Form::Constant { level: 2, duration_ms: 1_000 }).expect("a load"))
    }

    fn of(exports: &Exports, load: &Load, reads_names: bool) -> Result<Value, String> {
        options(
            exports,
            &RunSpec::default().under(load.clone()),
            Round::Measure,
            Traits { reads_names, calls_grpc: false },
        )
        .map(Value::from)
    }

    /// Returns the load set for a round.
    fn set(load: &Load, round: Round) -> Option<Value> {
        scenario((load, Duration::from_millis(200)), round)
    }

    #[test]
    fn each_load_has_its_executor() {
        let constant = Form::Constant { level: 10, duration_ms: 1_500 };
        let stages = Form::Stages(vec![Stage { duration_ms: 1_000, target: 50 }, Stage { duration_ms: 0, target: 5 }]);
        let closed = |form| Load::Closed(Closed::new(form).expect("a load"));
        let open = |form| Load::Open(Open::new(form, Some(7)).expect("a load"));
        let corners = json!([{"duration": "1000ms", "target": 50}, {"duration": "0ms", "target": 5}]);
        let table = [
            (closed(constant.clone()), json!({"executor": "constant-vus", "vus": 10, "duration": "1500ms"})),
            (closed(stages.clone()), json!({"executor": "ramping-vus", "startVUs": 0, "stages": corners})),
            (
                open(constant),
                json!({"executor": "constant-arrival-rate", "rate": 10, "timeUnit": "1s", "duration": "1500ms",
                    "preAllocatedVUs": 7, "maxVUs": 7}),
            ),
            (
                open(stages),
                json!({"executor": "ramping-arrival-rate", "startRate": 0, "timeUnit": "1s", "stages": corners,
                    "preAllocatedVUs": 7, "maxVUs": 7}),
            ),
        ];
        for (load, mut expected) in table {
            expected["gracefulStop"] = "30000ms".into();
            assert_eq!(set(&load, Round::Measure), Some(expected));
            let peak = load.shape().expect("a shape").peak();
            let warm = set(&load, Round::WarmUp).expect("a load");
            assert_eq!(warm["duration"], "1000ms", "k6 accepts no shorter duration");
            assert!(warm["vus"] == peak || warm["rate"] == peak, "{warm}");
        }
        assert_eq!(set(&Load::Script, Round::Measure), None);
    }

    #[test]
    fn a_load_takes_the_place_of_the_scripts_own() {
        let own = json!({"rps": 5, "vus": 9, "duration": "1m", "thresholds": {"checks": ["rate>0.9"]}});
        let set = of(&exports(&["default"], &own), &two_vus(), false).expect("options");
        assert_eq!(
            (&set["rps"], &set["vus"], &set["scenarios"]["default"]["vus"]),
            (&json!(5), &Value::Null, &json!(2))
        );
        assert_eq!(set["thresholds"], own["thresholds"]);
        let browse = json!({"executor": "per-vu-iterations", "startTime": "5s", "exec": "b", "env": {"A": "1"}, "tags": {"k": "v"}});
        let set = of(&exports(&["b"], &json!({"scenarios": {"browse": browse}})), &two_vus(), true).expect("options");
        let browse = &set["scenarios"]["browse"];
        assert_eq!(
            (&browse["exec"], &browse["env"]["A"], &browse["tags"]),
            (&json!("b"), &json!("1"), &json!({"k": "v"}))
        );
        assert_eq!((&browse["executor"], &browse["startTime"]), (&json!("constant-vus"), &Value::Null));
        assert_eq!(of(&exports(&["default"], &Value::Null), &Load::Script, false), Ok(json!({})));
    }

    #[test]
    fn scenarios_that_differ_are_refused() {
        let two = |one: Value, other: Value| exports(&["default"], &json!({"scenarios": {"a": one, "b": other}}));
        let differ = two(json!({"exec": "x"}), json!({"startTime": "9s"}));
        let sentence = "the script has 2 scenarios that differ (a, b): choose one of them, or run it with its own load";
        assert_eq!(of(&differ, &two_vus(), false), Err(sentence.to_owned()));
        let only = |name: &str, load: Load| {
            let spec = RunSpec { script_scenario: Some(name.to_owned()), ..RunSpec::default().under(load) };
            options(&differ, &spec, Round::Measure, Traits { reads_names: true, calls_grpc: false })
                .map(|options| options["scenarios"].clone())
        };
        assert_eq!(only("a", two_vus()).expect("options")["a"]["exec"], "x");
        assert_eq!(only("b", Load::Script), Ok(json!({"b": {}})), "its start time has no other to wait for");
        assert_eq!(only("c", two_vus()), Err("the script has no scenario \"c\"; it has a, b".to_owned()));
        let alike = two(json!({"vus": 1, "env": {}}), json!({"exec": "default"}));
        assert!(of(&alike, &two_vus(), false).is_ok() && of(&alike, &two_vus(), true).is_err());
    }

    #[test]
    fn only_a_script_with_setup_gets_tags() {
        let tagged = json!({"brewbench": "load"});
        let own = json!({"vus": 3, "duration": "9s", "thresholds": {"checks": ["rate>0.9"]}});
        let set = of(&exports(&["default", "setup"], &own), &Load::Script, false).expect("options");
        let default = json!({"executor": "constant-vus", "vus": 3, "duration": "9s", "tags": tagged});
        assert_eq!((&set["scenarios"]["default"], &set["vus"]), (&default, &Value::Null));
        assert!(set["thresholds"].as_object().is_some_and(|all| all.len() > 1), "{set}");
        assert_eq!(of(&exports(&["default"], &own), &Load::Script, false), Ok(own.clone()));
        let set = of(&exports(&["default", "teardown"], &own), &two_vus(), false).expect("options");
        assert_eq!(set["scenarios"]["default"]["tags"], tagged);
        let contradiction = json!({"iterations": 1, "stages": [{"duration": "1s"}]});
        assert!(
            of(&exports(&["setup"], &contradiction), &Load::Script, false).is_ok_and(|set| set["scenarios"].is_null())
        );
        let warm =
            options(&exports(&["setup"], &own), &RunSpec::default().under(two_vus()), Round::WarmUp, Traits::default());
        assert!(warm.expect("options").get("thresholds").is_none());
    }
}
