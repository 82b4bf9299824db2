//! Generates the script that k6 runs in place of the user's: it sets the load, and tags what belongs to it. Pure.
//!
//! A script's options override a configuration file, and no flags exist for arrival rates: so it takes a script.
//!
//! - A load that replaces the script's own runs the function of the script's scenario under its name, with its `env`
//!   and its tags. If the script has several scenarios that differ, it is refused.
//! - k6's summary adds up the requests of the load and those of `setup()` and `teardown()`. So if a script may have
//!   these, its scenarios get a tag, and thresholds without a condition make k6 report the load alone.

use std::time::Duration;

use brewbench_wire::load::{Form, Load, MIN_DURATION, Shape, Stage};
use brewbench_wire::reports::load;
use serde_json::{Value, json};

use super::{GRACEFUL_STOP, Round};

/// The end of the sentence by which a wrapper refuses a script with several scenarios that differ.
const REFUSED: &str = "): run it with its own load";

/// What the texts of a scenario say about its script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It may export `setup()` or `teardown()`.
    pub has_setup: bool,
    /// It may read the name of its scenario.
    pub reads_names: bool,
}

impl Traits {
    /// Finds the traits of a script and its files.
    pub fn find(texts: &[&str]) -> Self {
        let is_word = |word: &str| ["setup", "teardown"].contains(&word);
        let words = |text: &&str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(is_word);
        Self { has_setup: texts.iter().any(words), reads_names: texts.iter().any(|text| text.contains("k6/execution")) }
    }
}

/// Returns the wrapper for a round; `None` if k6 runs the script itself.
pub fn wrapper(job: (&Load, Duration), round: Round, traits: Traits, script: &str) -> Option<String> {
    let scenario = scenario(job, round);
    if scenario.is_none() && !traits.has_setup {
        return None;
    }
    let options = options(scenario.as_ref(), round, traits, &json!({}));
    Some(format!("{}{options}", exports(script)))
}

/// Returns the sentence by which a wrapper refused its script, from k6's message.
pub fn refusal(message: &str) -> Option<&str> {
    let (_, sentence) = message.split_once("Error: ")?;
    let end = sentence.find(REFUSED)?;
    Some(&sentence[..end + REFUSED.len()]).filter(|sentence| sentence.starts_with("the script has "))
}

/// Returns what every wrapper begins with. A script may have no default export.
pub fn exports(script: &str) -> String {
    format!("import * as own from './{script}';\nexport * from './{script}';\nexport default own.default;\n")
}

/// Returns k6's scenario for a round of a load with this warm-up; `None` if the script sets its load. The warm-up has
/// the highest level for the whole time, so that caches, pools and threads have grown before the measurement.
pub fn scenario((load, warm_up): (&Load, Duration), round: Round) -> Option<Value> {
    let mut scenario = match (round, load) {
        (_, Load::Script) => return None,
        (Round::WarmUp, _) => at_peak(load, u64::try_from(warm_up.max(MIN_DURATION).as_millis()).unwrap_or(u64::MAX)),
        (Round::Measure, Load::Closed(closed)) => match closed.vus().form() {
            Form::Constant { level, duration_ms } => vus(*level, *duration_ms),
            Form::Stages(stages) => json!({"executor": "ramping-vus", "startVUs": 0, "stages": corners(stages)}),
        },
        (Round::Measure, Load::Open(open)) => match open.rate().form() {
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

fn at_peak(load: &Load, duration_ms: u64) -> Value {
    let peak = load.shape().map_or(0, Shape::peak);
    match load {
        Load::Script | Load::Closed(_) => vus(peak, duration_ms),
        Load::Open(open) => rate(peak, duration_ms, open.max_vus()),
    }
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

/// Returns the options of a wrapper: those of the script, with the scenario in place of its load, and `more`.
pub fn options(scenario: Option<&Value>, round: Round, traits: Traits, more: &Value) -> String {
    let load = match scenario {
        Some(scenario) => replaced(scenario, traits),
        None if traits.has_setup => tagged(),
        None => "const kept = own.options ?? {};\n".to_owned(),
    };
    let thresholds = match round {
        Round::WarmUp => "{}".to_owned(),
        Round::Measure if traits.has_setup => {
            let alone: serde_json::Map<_, _> = load::sub_metrics().map(|name| (name, json!([]))).collect();
            format!("{{ ...kept.thresholds, ...{} }}", Value::from(alone))
        }
        Round::Measure => "kept.thresholds".to_owned(),
    };
    format!("{load}export const options = {{ ...kept, ...{more}, thresholds: {thresholds} }};\n")
}

/// Replaces the script's load, for the function, name, `env` and tags of its scenario. Several of them must agree.
fn replaced(scenario: &Value, traits: Traits) -> String {
    let own_name = if traits.reads_names { "name" } else { "''" };
    let tags = if traits.has_setup { tag() } else { json!({}) };
    format!(
        "const {{ scenarios, stages, vus, duration, iterations, ...others }} = own.options ?? {{}};\n\
         const all = Object.entries(scenarios ?? {{}});\n\
         const sorted = (map) => Object.entries(map ?? {{}}).sort();\n\
         const needs = ([name, one]) => JSON.stringify([{own_name}, one.exec ?? 'default', sorted(one.env), sorted(one.tags)]);\n\
         if (new Set(all.map(needs)).size > 1) {{\n  \
           const names = all.map(([name]) => name).join(', ');\n  \
           throw new Error(`the script has ${{all.length}} scenarios that differ (${{names}}{REFUSED}`);\n\
         }}\n\
         const [name, {{ exec, env, tags }}] = all[0] ?? ['default', {{}}];\n\
         const load = {{ ...{scenario}, exec, env, tags: {{ ...tags, ...{tags} }} }};\n\
         const kept = {{ ...others, scenarios: {{ [name]: load }} }};\n"
    )
}

/// Tags the script's own load. k6 makes a scenario `default` from options without one, which has to be done here for
/// its tag. Options that contradict each other are left to k6.
fn tagged() -> String {
    format!(
        "const {{ scenarios, iterations, duration, stages, vus, ...others }} = own.options ?? {{}};\n\
         const has = [scenarios != null, stages?.length > 0, (iterations ?? duration) != null];\n\
         const one = iterations != null ? {{ executor: 'shared-iterations', vus, iterations, maxDuration: duration }}\n  \
           : duration != null ? {{ executor: 'constant-vus', vus, duration }}\n  \
           : stages?.length > 0 ? {{ executor: 'ramping-vus', startVUs: vus, stages: stages.filter((stage) => stage.duration != null) }}\n  \
           : {{ executor: 'per-vu-iterations' }};\n\
         const all = Object.entries(scenarios ?? {{}}).length > 0 ? scenarios : {{ default: one }};\n\
         const tagged = ([name, one]) => [name, {{ ...one, tags: {{ ...one?.tags, ...{} }} }}];\n\
         const load = Object.fromEntries(Object.entries(all).map(tagged));\n\
         const kept = has.filter(Boolean).length > 1 ? own.options : {{ ...others, scenarios: load }};\n",
        tag()
    )
}

/// Returns the tag of the load.
fn tag() -> Value {
    let [name, value] = load::TAG;
    json!({name: value})
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::{Closed, Open};

    use super::*;

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
    fn a_refusal_is_a_sentence_without_k6s_words() {
        let sentence = "the script has 2 scenarios that differ (a, b): run it with its own load";
        let message = format!(
            "k6 failed: the script threw an exception (exit status 107): Error: {sentence} at file:///x.js:7:4(3)"
        );
        assert_eq!(refusal(&message), Some(sentence));
        assert_eq!(refusal("k6 failed: Error: x at y"), None);
    }

    #[test]
    fn only_a_script_that_may_have_setup_gets_tags() {
        let plain = "export default function () { doSetupOf(x); }";
        assert_eq!(Traits::find(&[plain, "{}"]), Traits::default());
        for text in ["export async function setup() {}", "exports.teardown = f", "export { setup } from './common.js';"]
        {
            assert!(Traits::find(&[plain, text]).has_setup, "{text}");
        }
        let of = |text| wrapper((&Load::Script, Duration::ZERO), Round::Measure, Traits::find(&[text]), "script.js");
        assert_eq!(of(plain), None);
        assert!(of("function setup() {}").is_some_and(|text| text.contains(r#"{"brewbench":"load"}"#)));
    }
}
