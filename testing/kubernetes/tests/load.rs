//! Real load from Pods: several k6 start together, push to the agent, and are judged one by one.

#[path = "support/bench.rs"]
mod bench;

use bench::{Bench, job};
use brewbench_agent::{
    reports::read,
    wire::{job::Job, outcome::Ended},
};

fn distributed(target: &str, generators: u32) -> Job {
    Job { cluster_generators: generators, ..job(target) }
}

#[tokio::test]
async fn every_request_of_every_generator_counts_once() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let outcome = bench.run(&distributed("good", 4)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(outcome.generators.len(), 4);
    for generator in &outcome.generators {
        let summary = read::parse(generator.summary.as_bytes()).expect("a summary");
        let series = generator.series.unpack().expect("a series");
        let measured = series.measured.expect("a measurement");
        let requests: u64 = measured.seconds.iter().map(|second| second.requests()).sum();
        assert_eq!(requests, summary.figures().requests, "{generator:?}");
        assert!(requests > 10, "{generator:?}");
    }
}
