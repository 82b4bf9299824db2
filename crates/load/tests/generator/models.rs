//! The two models of a load, over time and over generators.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use brewbench_load::events::Summary;
use brewbench_load::plan::Spacing;
use brewbench_load::turns::Turns;
use brewbench_wire::job::Segment;
use brewbench_wire::load::{Closed, Form, Load, Open, Stage};

use super::server::{OK, Server};
use super::{at_least, closed, open, plan, run};

#[test]
fn a_rate_starts_exactly_its_number_of_requests() {
    let server = Server::answering(OK);
    let mut plan = plan(&server, open(301, 1, 20));
    plan.threads = Some(2);
    let (_, summary) = run(&plan);
    assert_eq!((summary.requests + summary.dropped, summary.failed), (301, 0));
    assert_eq!((summary.requests, summary.scheduling.histogram.total()), (server.requests(), server.requests()));
    assert!(summary.opened <= 20 && summary.opened == server.connections());
}

#[test]
fn the_parts_of_several_generators_add_up_to_the_load() {
    let server = Server::answering(OK);
    let ramp = Form::Stages(vec![Stage { duration_ms: 500, target: 200 }, Stage { duration_ms: 500, target: 50 }]);
    let loads = [(open(201, 1, 7), 201), (Load::Open(Open::new(ramp, Some(9)).expect("a load")), 113)];
    for (load, expected) in loads {
        let before = server.requests();
        let parts: Vec<Summary> = thread::scope(|scope| {
            let part = |index| {
                let mut plan = plan(&server, load.clone());
                plan.segment = Some(Segment { index, of: 2 });
                scope.spawn(move || run(&plan).1)
            };
            let parts = [part(0), part(1)];
            parts.map(|part| part.join().expect("a load")).into()
        });
        let sum = |of: fn(&Summary) -> u64| parts.iter().map(of).sum::<u64>();
        // A slow machine may have no connection free at the end.
        assert_eq!(sum(|part| part.requests + part.dropped), expected);
        assert_eq!(sum(|part| part.requests), server.requests() - before);
    }
}

#[test]
fn connections_follow_the_stages_of_a_closed_load() {
    let server = Server::answering(OK);
    let stages = [(0, 3), (1_000, 3), (0, 1), (1_100, 1)];
    let stages = stages.map(|(duration_ms, target)| Stage { duration_ms, target }).to_vec();
    let load = Load::Closed(Closed::new(Form::Stages(stages)).expect("a load"));
    let (seconds, summary) = run(&plan(&server, load));
    assert_eq!((summary.opened, server.connections(), summary.failed), (3, 3, 0));
    assert!(seconds.iter().filter(|second| second.until_ms == 2_000).all(|second| second.connections == 1));
    assert_eq!(summary.requests, server.responses());
}

#[test]
fn poisson_arrivals_are_the_same_with_the_same_seed() {
    let server = Server::answering(OK);
    let mut plan = plan(&server, open(300, 1, 50));
    plan.spacing = Spacing::Poisson;
    plan.seed = 7;
    let started = |summary: &Summary| summary.requests + summary.dropped;
    let (_, first) = run(&plan);
    let (_, second) = run(&plan);
    assert_eq!(started(&first), started(&second));
    // Five standard deviations.
    assert!(started(&first).abs_diff(300) < 87, "{}", started(&first));
}

/// A server that notes which of two targets reads a request.
fn noting(second: bool, log: &Arc<Mutex<Vec<bool>>>) -> Server {
    let log = Arc::clone(log);
    Server::start(move |connection| {
        loop {
            connection.request()?;
            log.lock().expect("the log").push(second);
            connection.respond(OK.as_bytes())?;
        }
    })
}

#[test]
fn loads_that_take_turns_never_load_both_targets_at_the_same_time() {
    let log = Arc::default();
    let servers = [false, true].map(|second| noting(second, &log));
    for load in [closed(3), open(400, 1, 8)] {
        log.lock().expect("the log").clear();
        let both: Vec<Summary> = thread::scope(|scope| {
            let one = |is_second: bool| {
                let mut plan = plan(&servers[usize::from(is_second)], load.clone());
                plan.turns = Some(Turns { seed: 5, is_second });
                scope.spawn(move || run(&plan).1)
            };
            [one(false), one(true)].map(|load| load.join().expect("a load")).into()
        });
        let log = log.lock().expect("the log");
        let changes = log.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // 11 turns each of 95 ms. A slow machine may read a request late, which then stands among the other's.
        assert!((6..60).contains(&changes), "{changes} changes among {} requests", log.len());
        for summary in both {
            assert_eq!((summary.planned_ms, summary.open_ms, summary.failed), (2_200, Some(1_045), 0));
            assert!(summary.requests > 200 && summary.late_requests * 5 < summary.requests, "{summary:?}");
            if summary.open {
                assert_eq!(summary.requests + summary.dropped, 400);
            }
        }
    }
}

/// A server that stops for a second once it has read a number of requests.
fn stalling(after: u64) -> Server {
    let (read, has_stalled) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let until = Arc::new(Mutex::new(None::<Instant>));
    Server::start(move |connection| {
        loop {
            connection.request()?;
            if read.fetch_add(1, Ordering::SeqCst) + 1 == after {
                has_stalled.store(true, Ordering::SeqCst);
                *until.lock().expect("a time") = Some(Instant::now() + Duration::from_secs(1));
            }
            if has_stalled.load(Ordering::SeqCst) {
                let until = *until.lock().expect("a time");
                thread::sleep(until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now())));
            }
            connection.respond(OK.as_bytes())?;
        }
    })
}

#[test]
fn a_stall_shows_in_an_open_load_as_theory_says_and_not_in_a_closed_one() {
    const RATE: u32 = 400;
    let server = stalling(200);
    let (_, summary) = run(&plan(&server, open(RATE, 3, 10)));
    assert_eq!((summary.requests + summary.dropped, summary.failed), (1_200, 0));
    // The stall begins with request 200 or later, and request 200 + n should start n/400 s after it: it waits for the
    // rest of the second at least. A slow machine only makes it wait longer.
    for ms in [50.0, 250.0, 500.0, 750.0, 950.0] {
        let waiting = f64::from(RATE) * (1.0 - ms / 1_000.0);
        // A bucket is 0.27 % wide, and the first request after the start is counted from 0.
        let expected = waiting - 0.003 * f64::from(RATE) - 2.0;
        let found = at_least(&summary, ms) as f64;
        assert!(found >= expected, "{found} of at least {ms} ms, not {expected}");
    }
    // A third of all waits, evenly up to a second, so the p99 is 0.97 s.
    let p99 = summary.succeeded.histogram.quantile(0.99).expect("latencies");
    assert!(p99.high >= 950.0, "{p99:?}");

    let server = stalling(10);
    let mut plan = plan(&server, closed(2));
    plan.list.think_time_ms = 1;
    let (_, summary) = run(&plan);
    // Two connections can not wait longer than two connections exist.
    let found = at_least(&summary, 500.0) as f64;
    let most = 2.0 * summary.elapsed_ms as f64 / 500.0;
    assert!((1.0..=most).contains(&found), "{found} of at most {most}");
}

#[test]
fn few_connections_make_starts_wait() {
    let server = Server::start(|connection| {
        loop {
            connection.request()?;
            thread::sleep(Duration::from_millis(20));
            connection.respond(OK.as_bytes())?;
        }
    });
    // One connection answers 50 requests per second at most.
    let (_, summary) = run(&plan(&server, open(100, 1, 1)));
    assert_eq!(summary.requests + summary.dropped, 100);
    assert!(summary.requests <= 51 && summary.waited > 0, "{summary:?}");
    assert!(summary.late_requests <= 1);
}
