//! A load in k6's words: a script around the user's own that has all of it but says itself how hard and how long.
//!
//! A script's own options go before a configuration file, and flags know no arrival rates: so it takes a script.

use std::time::Duration;

use serde_json::{Value, json};

use crate::wire::load::{Form, Load, SHORTEST, Shape, Stage};

/// The wrapper around `script` for the measured load; none where the script decides.
pub fn measured(load: &Load, script: &str) -> Option<String> {
    let scenario = match load {
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
    Some(around(script, &scenario))
}

/// The wrapper for the warm-up: the highest level, all the time, so that caches, pools and threads have grown before
/// the first figure counts.
pub fn warm_up(load: &Load, length: Duration, script: &str) -> Option<String> {
    let duration_ms = u64::try_from(length.max(SHORTEST).as_millis()).unwrap_or(u64::MAX);
    let peak = load.shape().map_or(0, Shape::peak);
    let scenario = match load {
        Load::Script => return None,
        Load::Closed(_) => vus(peak, duration_ms),
        Load::Open(open) => rate(peak, duration_ms, open.max_vus()),
    };
    Some(around(script, &scenario))
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

/// Keeps thresholds, tags and all other options of the script, and its setup, teardown and summary.
fn around(script: &str, scenario: &Value) -> String {
    format!(
        "import * as own from './{script}';\n\
         export * from './{script}';\n\
         export {{ default }} from './{script}';\n\
         const {{ scenarios, stages, vus, duration, iterations, ...kept }} = own.options ?? {{}};\n\
         export const options = {{ ...kept, scenarios: {{ default: {scenario} }} }};\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::load::{Closed, Open};

    /// What the wrapper says of the load.
    fn scenario(wrapper: Option<String>) -> Value {
        let text = wrapper.expect("a wrapper");
        let (_, rest) = text.split_once("default: {").expect("a scenario");
        serde_json::Deserializer::from_str(&format!("{{{rest}")).into_iter().next().expect("JSON").expect("JSON")
    }

    #[test]
    fn each_load_is_one_of_k6_s_executors() {
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
        for (load, expected) in table {
            assert_eq!(scenario(measured(&load, "script.js")), expected);
            let peak = load.shape().expect("a shape").peak();
            let warm = scenario(warm_up(&load, Duration::from_millis(200), "script.js"));
            assert_eq!(warm["duration"], "1000ms", "k6 takes no shorter one");
            assert!(warm["vus"] == peak || warm["rate"] == peak, "{warm}");
        }
        assert_eq!(measured(&Load::Script, "script.js"), None);
    }
}
