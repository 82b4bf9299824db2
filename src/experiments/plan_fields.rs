//! Fields of a plan that users give as one text: the form, the flags of `run new` and "As command" read this list.
//! Pure.

use brewbench_wire::run_spec::{HttpVersion, SCALES};

use super::plan::{Plan, default_warm_up_s};

/// The fields, in the order of the form.
pub static FIELDS: [PlanField; 6] = [WARM_UP_FIELD, ENGINE, DUET, HTTP_VERSION, SCRIPT_SCENARIO, SCALE];

const WARM_UP_FIELD: PlanField = PlanField {
    flag: WARM_UP,
    key: "warm_up_s",
    label: "Warm-up",
    hint: "auto: until the target is steady, at most 20s; the default if a target compiles while it runs",
    placeholder: "2s, or auto",
    choices: &[],
    value_name: "TIME|auto",
    help: "Warm-up before each run, at the load's highest level. `auto` ends once the target is steady, after at most 20s \
        [default: auto if a target compiles while it runs, as Java does; else 2s]",
    get: |plan| if plan.warm_up_auto { Some(AUTO.to_owned()) } else { plan.warm_up_s.map(seconds_text) },
    set: set_warm_up,
};

const ENGINE: PlanField = PlanField {
    flag: "engine",
    key: "engine",
    label: "Load generator",
    hint: "auto: k6 for scripts, native for request lists, at a fraction of k6’s CPU time; wrk to check totals",
    placeholder: "",
    choices: &["auto", "k6", "native", "wrk"],
    value_name: "ENGINE",
    help: "Load generator: `k6` for scripts, `native` for request lists, at a fraction of k6's CPU time, `wrk` to check \
        totals by another tool [default: auto, k6 if the scenario has a script]",
    get: |plan| plan.engine.map(|engine| engine.as_str().to_owned()),
    set: |plan, text| {
        plan.engine = if text == AUTO { None } else { Some(text.parse()?) };
        Ok(())
    },
};

const DUET: PlanField = PlanField {
    flag: "duet",
    key: "duet",
    label: "Duet",
    hint: "both targets run at once and are loaded in turns, so noise affects them alike",
    placeholder: "",
    choices: YES_OR_NO,
    value_name: "yes|no",
    help: "Run both targets at once and load them in turns of 0.1s, so that noise affects them alike. Needs two targets, \
        one size with whole vCPUs, one load and the native engine; at least 6 repetitions decide [default: no]",
    get: |plan| plan.duet.then(|| "yes".to_owned()),
    set: |plan, text| {
        plan.duet = match text {
            "yes" => true,
            "no" => false,
            _ => return Err("must be yes or no".to_owned()),
        };
        Ok(())
    },
};

const HTTP_VERSION: PlanField = PlanField {
    flag: "http-version",
    key: "http_version",
    label: "HTTP version",
    hint: "auto: HTTP/2 if the target offers it with TLS; only native can force HTTP/2",
    placeholder: "",
    choices: &HttpVersion::NAMES,
    value_name: "VERSION",
    help: "HTTP version of the requests. `auto` uses HTTP/2 if the target offers it with TLS; only the native engine \
        can force HTTP/2 [default: auto]",
    get: |plan| {
        Some(plan.http_version).filter(|version| *version != HttpVersion::Auto).map(|it| it.as_str().to_owned())
    },
    set: |plan, text| {
        plan.http_version = text.parse()?;
        Ok(())
    },
};

const SCRIPT_SCENARIO: PlanField = PlanField {
    flag: SCRIPT_SCENARIO_FLAG,
    key: "script_scenario",
    label: "Scenario of the script",
    hint: "a name in the script’s options.scenarios; empty: all",
    placeholder: "",
    choices: &[],
    value_name: "NAME",
    help: "Run only this one of the scenarios in the script's options, with its own load or another one [default: all]",
    get: |plan| plan.script_scenario.clone(),
    set: |plan, text| {
        plan.script_scenario = Some(text.to_owned()).filter(|name| !name.is_empty());
        Ok(())
    },
};

const SCALE: PlanField = PlanField {
    flag: "scale",
    key: "scale",
    label: "Scale the script’s load",
    hint: "factor on its VUs and rates, with the load of the script only",
    placeholder: "1",
    choices: &[],
    value_name: "FACTOR",
    help: "Multiply the virtual users and rates of the script's own load [default: 1]",
    get: |plan| plan.scale.map(|scale| scale.to_string()),
    set: |plan, text| {
        let factor = text.parse().ok().filter(|factor| SCALES.contains(factor));
        let factor = factor.ok_or_else(|| format!("must be between {} and {}", SCALES.start(), SCALES.end()))?;
        plan.scale = Some(factor).filter(|factor: &f64| (factor - 1.0).abs() > f64::EPSILON);
        Ok(())
    },
};

/// The flag of the warm-up, which presets reset.
pub const WARM_UP: &str = "warm-up";

/// The flag of the script's scenario, of which the form knows the names.
pub const SCRIPT_SCENARIO_FLAG: &str = "script-scenario";

/// The values of a field that is on or off; its flag alone means yes.
pub const YES_OR_NO: &[&str] = &["no", "yes"];

/// The value for a warm-up until the target is steady.
const AUTO: &str = "auto";

/// A field of a plan as text.
#[derive(Debug)]
pub struct PlanField {
    /// Name of its flag, and of its field in the form.
    pub flag: &'static str,
    /// Name in JSON, with which errors of the API start.
    pub key: &'static str,
    /// Its label in the form.
    pub label: &'static str,
    /// Explains it below its label.
    pub hint: &'static str,
    /// What an empty field shows.
    pub placeholder: &'static str,
    /// Its values, the default first; empty if there are others.
    pub choices: &'static [&'static str],
    /// Name of the flag's value.
    pub value_name: &'static str,
    /// Help of the flag.
    pub help: &'static str,
    /// Returns its text; `None` if it has its default.
    pub get: fn(&Plan) -> Option<String>,
    /// Sets it. The error is a sentence without its subject.
    pub set: fn(&mut Plan, &str) -> Result<(), String>,
}

/// Finds a field by its flag.
pub fn find(flag: &str) -> Option<&'static PlanField> {
    FIELDS.iter().find(|field| field.flag == flag)
}

/// Returns the fields that a plan sets, by flag.
pub fn texts(plan: &Plan) -> impl Iterator<Item = (&'static str, String)> {
    FIELDS.iter().filter_map(|field| Some((field.flag, (field.get)(plan)?)))
}

fn set_warm_up(plan: &mut Plan, text: &str) -> Result<(), String> {
    let sentence = || "must be a time, such as 10s, 500ms or 1m30s, or auto".to_owned();
    plan.warm_up_auto = text == AUTO;
    plan.warm_up_s = Some(if plan.warm_up_auto { default_warm_up_s() } else { seconds(text).ok_or_else(sentence)? });
    Ok(())
}

/// Parses a duration such as `10s`, or a plain number of seconds.
pub fn seconds(text: &str) -> Option<f64> {
    let bare = || text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    let words = || text.parse::<jiff::SignedDuration>().ok().map(|duration| duration.as_secs_f64());
    bare().or_else(words).filter(|seconds| *seconds >= 0.0)
}

/// Formats seconds so that [`seconds`] can parse them.
pub fn seconds_text(seconds: f64) -> String {
    format!("{seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_default_and_reads_what_it_writes() {
        assert_eq!(texts(&Plan::default()).count(), 0);
        for field in &FIELDS {
            let texts: &[&str] = match field.flag {
                WARM_UP => &["auto", "0.5s"],
                SCRIPT_SCENARIO_FLAG => &["browse", "a b"],
                _ if field.choices.is_empty() => &["0.5", "1000"],
                _ => &field.choices[1..],
            };
            for text in texts {
                let mut plan = Plan::default();
                (field.set)(&mut plan, text).expect("a value");
                assert_eq!((field.get)(&plan).as_deref(), Some(*text), "{}", field.flag);
            }
            if let Some(default) = field.choices.first() {
                let mut plan = Plan::default();
                (field.set)(&mut plan, default).expect("the default");
                assert_eq!(plan, Plan::default(), "{}", field.flag);
            }
            // The name of a scenario is any text.
            let is_any = field.flag == SCRIPT_SCENARIO_FLAG;
            assert_eq!((field.set)(&mut Plan::default(), "neither").is_ok(), is_any, "{}", field.flag);
        }
    }
}
