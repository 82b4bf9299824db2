//! A load as JSON, as text, and as typed by users. Pure.

pub use brewbench_wire::load::LoadBody;
use brewbench_wire::{
    load::{Form, Load, Open, Shape, Stage},
    run_spec::{HttpVersion, RunSpec},
};

use crate::web::format;

/// Serializes a load for the database.
pub fn to_json(load: &Load) -> String {
    serde_json::to_string(load).unwrap_or_default()
}

/// Reads a load from the database, as written by [`to_json`].
pub fn read(text: &str) -> serde_json::Result<Load> {
    serde_json::from_str(text)
}

/// Describes the load that a run measures by one of the functions below; `None` if it is unknown.
pub fn describe_with(spec: &RunSpec, describe: fn(&Load) -> String) -> Option<String> {
    let load = spec.load.as_ref().map(describe)?;
    let scale = spec.scale.map(|scale| format!(" × {scale}"));
    let only = spec.script_scenario.as_ref().map(|name| format!(" ({name})"));
    let version = Some(spec.http_version).filter(|version| *version != HttpVersion::Auto);
    let version = version.map(|version| format!(" over HTTP/{}", version.as_str()));
    let engine = spec.requested_engine.map(|engine| format!(" with {}", engine.as_str()));
    let duet = spec.duet.then(|| ", in a duet".to_owned());
    Some([Some(load), scale, only, version, engine, duet].into_iter().flatten().collect())
}

/// The load in words: `50 VUs`, `2,000 iterations/s`, `0 → 100 VUs in 3 stages`.
pub fn describe(load: &Load) -> String {
    let Some(shape) = load.shape() else { return "load of the script".to_owned() };
    let count = |level: u32| format::count(Some(u64::from(level))).text().to_owned();
    let unit = match load {
        Load::Open(_) if shape.peak() == 1 => "iteration/s",
        Load::Open(_) => "iterations/s",
        _ if shape.peak() == 1 => "VU",
        _ => "VUs",
    };
    match shape.form() {
        Form::Constant { level, .. } => format!("{}\u{a0}{unit}", count(*level)),
        Form::Stages(stages) => {
            let levels: Vec<String> = key_levels(shape).into_iter().map(count).collect();
            format!("{}\u{a0}{unit} in {}", levels.join(" → "), format::plural(stages.len(), "stage"))
        }
    }
}

/// The load in words with all stages: different loads have different texts, except for the duration of a constant load.
pub fn exact(load: &Load) -> String {
    match load.shape().map(Shape::form) {
        Some(Form::Stages(given)) => format!("{} ({})", describe(load), stages_text(given)),
        _ => describe(load),
    }
}

/// Like [`exact`], with the maximum of virtual users unless it is the default: fewer of them drop iterations earlier.
pub fn with_unusual_max_vus(load: &Load) -> String {
    let is_default = |open: &Open| Open::new(open.rate().form().clone(), None).is_ok_and(|default| default == *open);
    match load {
        Load::Open(open) if !is_default(open) => with_max_vus(load),
        _ => exact(load),
    }
}

/// Like [`exact`], always with the maximum of virtual users.
pub fn with_max_vus(load: &Load) -> String {
    match load {
        Load::Open(open) => {
            let vus = usize::try_from(open.max_vus()).unwrap_or(usize::MAX);
            format!("{}, at most {}", exact(load), format::plural(vus, "VU"))
        }
        Load::Script | Load::Closed(_) => exact(load),
    }
}

/// The first level, the peak and the last level of a shape, without repetitions.
fn key_levels(shape: &Shape) -> Vec<u32> {
    let points = shape.points();
    let mut levels: Vec<u32> = points.first().into_iter().map(|(_, level)| *level).collect();
    levels.push(shape.peak());
    levels.extend(points.last().map(|(_, level)| *level));
    levels.dedup();
    levels
}

/// Parses stages in k6's notation, durations with targets: `5s:10,10s:50`.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, String> {
    let parts = text.split([',', ' ', '\n']).map(str::trim).filter(|part| !part.is_empty());
    let stages: Vec<Stage> = parts.enumerate().map(|(place, part)| stage(place, part)).collect::<Result<_, _>>()?;
    if stages.is_empty() { Err("write stages as 5s:10,10s:50".to_owned()) } else { Ok(stages) }
}

fn stage(place: usize, part: &str) -> Result<Stage, String> {
    let fault = |why: &str| format!("stage {} ({part:?}): {why}", place + 1);
    let (duration, target) = part.split_once(':').ok_or_else(|| fault("write it as 10s:50"))?;
    let duration =
        duration.parse::<jiff::SignedDuration>().ok().and_then(|given| u64::try_from(given.as_millis()).ok());
    let duration_ms = duration.ok_or_else(|| fault("the duration before ':' must look like 10s, 500ms or 1m30s"))?;
    let target = target.parse().map_err(|_| fault("the target after ':' must be an integer"))?;
    Ok(Stage { duration_ms, target })
}

/// Writes stages in the notation of [`parse_stages`].
pub fn stages_text(stages: &[Stage]) -> String {
    let part = |stage: &Stage| match stage.duration_ms {
        ms if ms.is_multiple_of(1_000) => format!("{}s:{}", ms / 1_000, stage.target),
        ms => format!("{ms}ms:{}", stage.target),
    };
    stages.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
pub(crate) mod tests {
    use brewbench_wire::load::{Closed, StageBody};

    use super::*;

    /// A constant number of virtual users.
    pub fn vus(vus: u32, duration_s: f64) -> Load {
        LoadBody::Vus { vus, duration_s }.try_into().expect("a load")
    }

    /// A constant rate.
    pub fn rate(rate: u32, duration_s: f64) -> Load {
        LoadBody::Rate { rate, duration_s, max_vus: None }.try_into().expect("a load")
    }

    /// Virtual users in stages.
    pub fn vus_stages(text: &str) -> Load {
        Load::Closed(Closed::new(Form::Stages(parse_stages(text).expect("stages"))).expect("a load"))
    }

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn a_load_has_a_short_and_an_exact_text() {
        assert_eq!(plain(&describe(&vus(1, 1.0))), "1 VU");
        assert_eq!(plain(&describe(&rate(2_000, 10.0))), "2,000 iterations/s");
        let ramp = vus_stages("10s:50,20s:100,10s:100");
        assert_eq!(plain(&describe(&ramp)), "0 → 100 VUs in 3 stages");
        assert_eq!(plain(&describe(&vus_stages("0s:5,1s:10,1500ms:0"))), "5 → 10 → 0 VUs in 3 stages");
        assert_eq!(plain(&exact(&ramp)), "0 → 100 VUs in 3 stages (10s:50,20s:100,10s:100)");
        assert_eq!(exact(&vus(5, 1.0)), exact(&vus(5, 9.0)));
        assert_eq!(describe(&Load::Script), "load of the script");
    }

    #[test]
    fn loads_round_trip_through_json() {
        let stages = LoadBody::RateStages { stages: vec![StageBody { duration_s: 1.5, target: 7 }], max_vus: None };
        for load in
            [Load::Script, vus(3, 1.25), rate(9, 2.0), vus_stages("1s:5,0s:1"), stages.try_into().expect("a load")]
        {
            assert_eq!(read(&to_json(&load)).expect("a load"), load);
        }
        assert_eq!(to_json(&vus(3, 1.0)), r#"{"kind":"vus","vus":3,"duration_s":1.0}"#);
        for (text, why) in [
            (r#"{"kind":"vus","vus":3}"#, "duration_s"),
            (r#"{"kind":"vus","vus":3,"duration_s":-1}"#, "duration: -1 is not a valid number of seconds"),
            (r#"{"kind":"vus","vus":3,"duration_s":1,"rate":5}"#, "rate"),
            (r#"{"kind":"loud"}"#, "loud"),
        ] {
            let fault = read(text).expect_err(text).to_string();
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn stages_use_the_notation_of_k6_and_an_error_names_its_stage() {
        let stages = parse_stages(" 5s:10, 1m30s:50,500ms:0 ").expect("stages");
        assert_eq!(stages_text(&stages), "5s:10,90s:50,500ms:0");
        for (text, why) in [
            ("", "write stages as 5s:10,10s:50"),
            ("5s:10,10s", "stage 2 (\"10s\"): write it as 10s:50"),
            ("soon:10", "stage 1 (\"soon:10\"): the duration before ':' must look like 10s, 500ms or 1m30s"),
            ("-1s:10", "stage 1 (\"-1s:10\"): the duration before ':'"),
            ("5s:many", "stage 1 (\"5s:many\"): the target after ':' must be an integer"),
        ] {
            let fault = parse_stages(text).expect_err(text);
            assert!(fault.starts_with(why), "{fault}");
        }
    }
}
