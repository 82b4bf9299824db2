//! Generates a wrapper around the user's script that keeps everything except the load, which it sets.
//!
//! A script's options override a configuration file, and no flags exist for arrival rates: so it takes a script.

use std::time::Duration;

use serde_json::{Value, json};

use crate::wire::load::{Form, Load, SHORTEST, Shape, Stage};

/// Returns the wrapper for the measured load; `None` if the script sets its load.
pub fn measured(load: &Load, script: &str) -> Option<String> {
    Some(around(script, &measured_scenario(load)?))
}

/// Returns k6's scenario for the measured load; `None` if the script sets its load.
pub fn measured_scenario(load: &Load) -> Option<Value> {
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
    Some(scenario)
}

/// Returns the wrapper for the warm-up, with the highest level for the whole time, so that caches, pools and threads
/// have grown before the measurement.
pub fn warm_up(load: &Load, length: Duration, script: &str) -> Option<String> {
    Some(around(script, &warm_up_scenario(load, length)?))
}

/// Returns k6's scenario for the warm-up; `None` if the script sets its load.
pub fn warm_up_scenario(load: &Load, length: Duration) -> Option<Value> {
    let duration_ms = u64::try_from(length.max(SHORTEST).as_millis()).unwrap_or(u64::MAX);
    let peak = load.shape().map_or(0, Shape::peak);
    let scenario = match load {
        Load::Script => return None,
        Load::Closed(_) => vus(peak, duration_ms),
        Load::Open(open) => rate(peak, duration_ms, open.max_vus()),
    };
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

/// Keeps the script's thresholds, tags and other options, and its setup, teardown and summary.
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

    /// Returns the load set by a wrapper.
    fn scenario(wrapper: Option<String>) -> Value {
        let text = wrapper.expect("a wrapper");
        let (_, rest) = text.split_once("default: {").expect("a scenario");
        serde_json::Deserializer::from_str(&format!("{{{rest}")).into_iter().next().expect("JSON").expect("JSON")
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
        for (load, expected) in table {
            assert_eq!(scenario(measured(&load, "script.js")), expected);
            let peak = load.shape().expect("a shape").peak();
            let warm = scenario(warm_up(&load, Duration::from_millis(200), "script.js"));
            assert_eq!(warm["duration"], "1000ms", "k6 accepts no shorter duration");
            assert!(warm["vus"] == peak || warm["rate"] == peak, "{warm}");
        }
        assert_eq!(measured(&Load::Script, "script.js"), None);
    }
}
