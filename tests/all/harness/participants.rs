//! Outcomes of the participants of a distributed run: the host and the generators.

use brewbench_wire::{
    job::Job,
    outcome::{Cores, Enforced, Mechanism, Outcome},
    series::{Consumption, Packed, Series, Window},
};

use super::{
    agent::outcome,
    series::{matching_series, window},
};

/// The outcome of the host: no load, and usage of the target only.
pub fn host_outcome(job: &Job) -> Outcome {
    let usage = window(20).usage.into_iter().map(|mut usage| {
        usage.generator = Consumption::default();
        usage.host.user_us = usage.target.cpu_us.unwrap_or(0);
        usage
    });
    let measured = Window { seconds: Vec::new(), usage: usage.collect(), ..window(20) };
    Outcome {
        summary: None,
        series: Some(Packed::pack(&Series { warm_up: None, measured: Some(measured) })),
        cores: Cores { target: vec![0], generator: Vec::new() },
        engine: None,
        ..outcome(job, "")
    }
}

/// The outcome of a generator whose clock is ahead.
pub fn generator_outcome(job: &Job, summary: &str, ahead_ms: i64) -> Outcome {
    let mut series = matching_series(summary).unpack().expect("a series");
    let measured = series.measured.as_mut().expect("a measured phase");
    measured.start_ms += ahead_ms;
    for usage in &mut measured.usage {
        usage.target = Consumption::default();
        usage.host.user_us = usage.generator.cpu_us.unwrap_or(0);
    }
    Outcome {
        series: Some(Packed::pack(&series)),
        target_log: String::new(),
        generator_log: "k6 said something\n".to_owned(),
        cores: Cores { target: Vec::new(), generator: vec![0, 1] },
        enforced: Enforced { cpu: Mechanism::None, memory: Mechanism::None },
        target: None,
        target_version: String::new(),
        ..outcome(job, summary)
    }
}
