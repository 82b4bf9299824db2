//! Real load from Pods: several k6 start together, push to the agent, and are judged one by one.

#[path = "support/bench.rs"]
mod bench;

use bench::{Bench, job};
use brewbench_agent::{
    reports::read,
    wire::{
        job::Job,
        outcome::{Ended, Generator},
        series::Second,
    },
};
use brewbench_kubernetes_testing::k6_operator::K6Operator;

fn distributed(target: &str, generators: u32) -> Job {
    Job { cluster_generators: generators, ..job(target) }
}

/// Returns the requests in the series of a generator.
fn requests(generator: &Generator) -> u64 {
    let measured = generator.series.unpack().expect("a series").measured.expect("a measurement");
    measured.seconds.iter().map(Second::requests).sum()
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
        assert_eq!(requests(generator), summary.figures().requests, "{generator:?}");
        assert!(requests(generator) > 10, "{generator:?}");
    }
}

#[tokio::test]
async fn k6_operator_starts_what_own_jobs_would() {
    let Some(bench) = Bench::start().await else { return };
    let _operator = K6Operator::install(&bench.cluster).await;
    bench.offer("good", "image = \"rust-hyper:1\"");
    let outcome = bench.run(&distributed("good", 3)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    for generator in &outcome.generators {
        assert!(generator.start_error_ms < 1_000.0, "{generator:?}");
        assert_eq!(
            requests(generator),
            read::parse(generator.summary.as_bytes()).expect("a summary").figures().requests
        );
    }
}
