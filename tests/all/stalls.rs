//! Targets and load generators that stand still for seconds, with a real k6 and a real target.

use std::time::Duration;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::{
    harness::submit::text,
    provoked::{Bench, ORDINARY, Request, codes, processes_of, servers_of},
};

fn signal(pids: &[i32], signal: Signal) {
    assert!(!pids.is_empty(), "a process to stop");
    for pid in pids {
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

/// The k6 that measures.
fn k6_of(run: &str) -> Vec<i32> {
    processes_of(run, "measured.tar")
}

/// Runs 14 seconds of load during which some processes are stopped for seven.
async fn stopped(bench: &mut Bench, request: Request<'_>, of: fn(&str) -> Vec<i32>) -> Value {
    let (id, job) = bench.job(Request { duration_s: 14.0, ..request }, None).await;
    let stop = async {
        bench.measuring.notified().await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let pids = of(&id);
        signal(&pids, Signal::SIGSTOP);
        tokio::time::sleep(Duration::from_secs(7)).await;
        signal(&pids, Signal::SIGCONT);
    };
    bench.execute(&id, &job, stop).await
}

#[track_caller]
fn sentence(run: &Value) -> String {
    assert!(codes(run).contains(&"stalled".to_owned()), "{run}");
    let reason = run["reasons"].as_array().expect("reasons").iter().find(|reason| reason["code"] == "stalled");
    let reason = reason.expect("just found");
    assert_eq!(reason["verdict"], "invalid", "half of the load: {reason}");
    text(&reason["text"])
}

#[tokio::test]
async fn a_target_that_is_stopped_for_seconds_makes_the_run_invalid() {
    let Some(mut bench) = Bench::start().await else { return };
    for vus in [1, 4] {
        let run = stopped(&mut bench, Request { vus, ..ORDINARY }, servers_of).await;
        let text = sentence(&run);
        assert!(text.starts_with("no response from second ") && text.contains("the target stood still"), "{text}");
        assert!(!codes(&run).contains(&"generator_held_back".to_owned()), "{run}");
    }
}

#[tokio::test]
async fn a_k6_that_is_stopped_for_seconds_makes_the_run_invalid() {
    let Some(mut bench) = Bench::start().await else { return };
    let run = stopped(&mut bench, ORDINARY, k6_of).await;
    let text = sentence(&run);
    assert!(text.contains("the load generator stood still") && text.contains("reported nothing"), "{text}");
}

#[tokio::test]
async fn a_target_that_hangs_to_the_end_makes_the_run_invalid() {
    let Some(mut bench) = Bench::start().await else { return };
    let (id, job) = bench.job(Request { duration_s: 8.0, ..ORDINARY }, None).await;
    let hang = async {
        bench.measuring.notified().await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        signal(&servers_of(&id), Signal::SIGSTOP);
    };
    let run = bench.execute(&id, &job, hang).await;
    let text = sentence(&run);
    assert!(text.contains("to the end") && text.contains("the target stood still"), "{text}");
}

#[tokio::test]
async fn pauses_of_a_script_are_no_stall() {
    let Some(mut bench) = Bench::start().await else { return };
    let sleeping = "import http from 'k6/http'; import { sleep } from 'k6';
        export default function () { http.get(__ENV.BASE_URL + '/hash'); sleep(2.5); }";
    for vus in [1, 8] {
        let run = bench.run(Request { script: sleeping, vus, duration_s: 9.0, ..ORDINARY }).await;
        assert!(!codes(&run).contains(&"stalled".to_owned()), "{run}");
    }
}
