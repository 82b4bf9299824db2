//! Fixtures for unit tests.

use brewbench::runs::{
    load::LoadBody,
    model::{Run, RunSpec},
};
use brewbench_wire::{
    job::Size,
    load::{Closed, Form, Load},
};
use serde_json::json;

/// A valid run as the API shows it: 10,000 requests/s, p50 4 ms, p99 16 ms.
pub fn finished(target: &str, repetition: u32) -> Run {
    let size = Size { name: "2 vCPU / 4 GiB".to_owned(), vcpus: 2.0, memory_bytes: 4 << 30, replicas: 1 };
    let spec = RunSpec {
        target: target.to_owned(),
        size: Some(size),
        scenario: Some("hash".to_owned()),
        scenario_sha256: Some("00aa00aa11bb11bb".to_owned()),
        warm_up_s: Some(2.0),
        ..RunSpec::default()
    };
    let mut run = serde_json::to_value(spec.under(vus(10, 10.0))).expect("JSON");
    let about = json!({
        "id": format!("{target}-{repetition}"), "experiment": "e", "labels": [], "origin": "agent", "version": "1.0",
        "repetition": repetition, "phase": "finished", "verdict": "valid", "reasons": [], "agent": "bench-01",
        "requests": 100_000, "failed": 0, "error_rate": 0.0, "rps": 10_000.0, "p50_ms": 4.0, "p99_ms": 16.0,
        "created_by": "ada", "queued_at_ms": 1, "phase_at_ms": 3, "started_at_ms": 2, "finished_at_ms": 3,
    });
    run.as_object_mut().expect("an object").extend(about.as_object().expect("an object").clone());
    serde_json::from_value(run).expect("a run")
}

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
    let stages = brewbench::runs::load::parse_stages(text).expect("stages");
    Load::Closed(Closed::new(Form::Stages(stages)).expect("a load"))
}
