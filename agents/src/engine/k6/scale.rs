//! Multiplies the virtual users and rates in a script's options. Pure.

use serde_json::{Map, Value};

/// Counts that must stay whole numbers, because they are the load.
const LEVELS: [&str; 5] = ["vus", "startVUs", "iterations", "rate", "startRate"];

/// Upper bounds, which are rounded up.
const BOUNDS: [&str; 2] = ["preAllocatedVUs", "maxVUs"];

/// Executor whose iterations are those of each virtual user, so that more virtual users are more iterations.
const PER_VU: &str = "per-vu-iterations";

/// How far a scaled level may be from a whole number, as a share of it.
const TOLERANCE: f64 = 0.005;

/// Scales all scenarios of a script, or its load without scenarios. The error is a sentence.
pub fn scale(options: &mut Map<String, Value>, factor: f64) -> Result<(), String> {
    match options.get_mut("scenarios").and_then(Value::as_object_mut).filter(|all| !all.is_empty()) {
        Some(all) => all.iter_mut().try_for_each(|(name, scenario)| {
            let Some(scenario) = scenario.as_object_mut() else { return Ok(()) };
            scenario_scaled(scenario, factor).map_err(|fault| format!("scenario {name}: {fault}"))
        }),
        None => scenario_scaled(options, factor),
    }
}

fn scenario_scaled(scenario: &mut Map<String, Value>, factor: f64) -> Result<(), String> {
    let is_per_vu = scenario.get("executor").is_some_and(|executor| executor == PER_VU);
    // k6's default; an executor with a rate has no such option.
    let has_vus = scenario.contains_key("iterations") || scenario.contains_key("duration");
    if has_vus && !scenario.contains_key("rate") {
        scenario.entry("vus").or_insert(1.into());
    }
    let mut scaled = false;
    for level in LEVELS.into_iter().filter(|level| !(is_per_vu && *level == "iterations")) {
        if let Some(value) = scenario.get_mut(level).filter(|value| !value.is_null()) {
            *value = whole(level, value, factor)?;
            scaled = true;
        }
    }
    for bound in BOUNDS {
        if let Some(value) = scenario.get_mut(bound).filter(|value| !value.is_null()) {
            *value = up(value.as_f64().unwrap_or_default() * factor).into();
        }
    }
    for stage in scenario.get_mut("stages").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(target) = stage.get_mut("target").filter(|target| !target.is_null()) {
            *target = whole("target", target, factor)?;
            scaled = true;
        }
    }
    if scaled { Ok(()) } else { Err("the script sets no load that could be scaled".to_owned()) }
}

/// Scales a level. Rounding would change the ratio between the scenarios of a script, so it is refused.
fn whole(name: &str, value: &Value, factor: f64) -> Result<Value, String> {
    let Some(level) = value.as_f64() else { return Err(format!("{name} is {value}, not a number")) };
    let scaled = level * factor;
    let whole = scaled.round();
    if (scaled - whole).abs() > TOLERANCE * scaled || whole > f64::from(u32::MAX) {
        return Err(format!("{name} {level} × {factor} is {scaled}: choose a scale that gives whole numbers"));
    }
    Ok(up(whole).into())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "negative and too large numbers saturate")]
fn up(number: f64) -> u64 {
    number.ceil() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scaled(options: &Value, factor: f64) -> Result<Value, String> {
        let mut options = options.as_object().cloned().expect("options");
        scale(&mut options, factor).map(|()| options.into())
    }

    #[test]
    fn every_executor_is_scaled() {
        let table = [
            (json!({"vus": 3, "duration": "1s"}), json!({"vus": 6, "duration": "1s"})),
            (json!({"duration": "1s"}), json!({"vus": 2, "duration": "1s"})),
            (json!({"vus": 1, "iterations": 5}), json!({"vus": 2, "iterations": 10})),
            (
                json!({"stages": [{"duration": "1s", "target": 4}, {"duration": "1s", "target": 0}]}),
                json!({"stages": [{"duration": "1s", "target": 8}, {"duration": "1s", "target": 0}]}),
            ),
            (
                json!({"scenarios": {"a": {"executor": "per-vu-iterations", "vus": 2, "iterations": 9}}}),
                json!({"scenarios": {"a": {"executor": "per-vu-iterations", "vus": 4, "iterations": 9}}}),
            ),
            (
                json!({"scenarios": {"a": {"rate": 5, "duration": "1s", "preAllocatedVUs": 2, "maxVUs": 3}}}),
                json!({"scenarios": {"a":
                    {"rate": 10, "duration": "1s", "preAllocatedVUs": 4, "maxVUs": 6}}}),
            ),
        ];
        for (own, twice) in table {
            assert_eq!(scaled(&own, 2.0), Ok(twice), "{own}");
        }
    }

    #[test]
    fn a_level_that_would_be_rounded_is_refused() {
        let own = json!({"scenarios": {"a": {"vus": 10, "duration": "1s"}, "b": {"vus": 1, "duration": "1s"}}});
        let sentence = "scenario b: vus 1 × 0.5 is 0.5: choose a scale that gives whole numbers";
        assert_eq!(scaled(&own, 0.5), Err(sentence.to_owned()));
        assert!(scaled(&json!({"rate": 1_000, "startRate": 999}), 0.7).is_ok(), "0.03 % off");
        assert!(scaled(&json!({"vus": "many"}), 2.0).is_err_and(|why| why.contains("not a number")));
        assert!(scaled(&json!({}), 2.0).is_err_and(|why| why.contains("sets no load")));
    }
}
