//! Logs of k6, and what is read from them.

use std::os::unix::process::ExitStatusExt;

use super::*;

fn log() -> Log {
    Log::new(Clock::new())
}

fn exit(code: i32) -> ExitStatus {
    ExitStatus::from_raw(code << 8)
}

/// Reads lines; returns those that people see.
fn read(log: &Log, text: &str) -> Vec<String> {
    let mut observer = log.observer();
    text.lines().filter(|line| observer(line)).map(str::to_owned).collect()
}

const START: &str = r#"time="t" level=debug msg="Logger format: TEXT"

         /\      Grafana   /‾‾/
    /\  /  \     |\  __   /  /

     execution: local
        script: a.js

     scenarios: (100.00%) 2 scenarios, 4 max VUs, 32s max duration (incl. graceful stop):
              * r: 2.00 iterations/s for 2s (maxVUs: 1-2, exec: r, gracefulStop: 30s)

time="t" level=debug msg="Start of test run" executorsCount=2 phase=execution-scheduler-run
time="t" level=debug msg="Running setup()..."
time="t" level=debug msg="Start all executors..." phase=execution-scheduler-run
"#;

const END: &str = r#"
running (03.0s), 1/3 VUs, 8 complete and 0 interrupted iterations
r    ✓ [ 100% ] 0/1 VUs  2s  2.00 iters/s
s    ↓ [ 100% ] 2 VUs    2s
time="t" level=debug msg="Regular duration is done, waiting for iterations to gracefully finish" executor=a gracefulStop=1s scenario=s
time="t" level=debug msg="Executor finished successfully" executor=r startTime=0s type=a
time="t" level=debug msg="Executor finished successfully" executor=s startTime=0s type=b
time="t" level=debug msg="teardown() is not defined or not exported, skipping!"
time="t" level=debug msg="Test finished cleanly"
time="t" level=debug msg="Generating the end-of-test summary..."

  TOTAL

running (03.5s), 0/3 VUs, 8 complete and 2 interrupted iterations
r    ✓ [ 100% ] 0/1 VUs  2s  2.00 iters/s
s    ✓ [ 100% ] 2 VUs    2s
time="t" level=debug msg="Everything has finished, exiting k6 normally!"
"#;

#[test]
fn the_course_of_a_load_is_read_and_its_noise_is_not_kept() {
    let log = log();
    let seen = read(&log, &format!("{START}{END}"));
    assert_eq!(seen, ["", "  TOTAL", ""]);
    let record = log.record(exit(0));
    assert!(record.load_start_ms.is_some(), "{record:?}");
    for time in [record.setup_ms, record.regular_ms, record.load_ms, record.teardown_ms] {
        assert!(time.is_some_and(|ms| ms < 60_000), "{record:?}");
    }
    assert!(record.regular_ms <= record.load_ms, "{record:?}");
    assert_eq!((record.interrupted_iterations, record.cut_short.as_deref()), (Some(2), None));
    assert_eq!((record.exceptions.expect("known").count, record.errors.expect("known").count), (0, 0));
}

#[test]
fn exceptions_and_requests_without_a_response_are_counted() {
    let log = log();
    let lines = r#"time="t" level=error msg="TypeError: no 'x'\n\tat default (file:///scenario/lib/a.js:4:23(3))\n" executor=constant-vus scenario=s source=stacktrace
time="t" level=error msg="TypeError: no 'x'\n\tat default (file:///scenario/lib/a.js:4:23(3))\n" executor=constant-vus scenario=s source=stacktrace
time="t" level=error msg="Uncaught (in promise) Error: nope\n\tat r (file:///scenario/lib/a.js:5:50(5))\n" executor=b scenario=r
time="t" level=warning msg="Request Failed" error="Get \"http://127.0.0.1:1/17\": dial tcp 127.0.0.1:1: connect: connection refused"
time="t" level=warning msg="Request Failed" error="Get \"http://127.0.0.1:1/18\": dial tcp 127.0.0.1:1: connect: connection refused"
time="t" level=warning msg="a hint"
panic: it broke
"#;
    let seen = read(&log, &format!("{START}{lines}"));
    assert_eq!(seen.len(), 7, "all of them are kept: {seen:?}");
    let record = log.record(exit(0));
    let texts = |messages: Option<brewbench_wire::load_record::Messages>| {
        let messages = messages.expect("known");
        let all = messages.commonest.into_iter().map(|message| (message.text, message.count));
        (messages.count, all.collect::<Vec<_>>())
    };
    let thrown = [("TypeError: no 'x' (lib/a.js:4:23)", 2), ("Uncaught (in promise) Error: nope (lib/a.js:5:50)", 1)];
    assert_eq!(texts(record.exceptions), (3, thrown.map(|(text, count)| (text.to_owned(), count)).to_vec()));
    let refused = "dial tcp 127.0.0.1:1: connect: connection refused".to_owned();
    assert_eq!(texts(record.errors), (2, vec![(refused, 2)]));
}

#[test]
fn a_script_forges_no_events() {
    let log = log();
    let forged = r#"time="t" level=debug msg="Start of test run" executorsCount=1 source=console
time="t" level=debug msg="Executor finished successfully" executor=s source=console
time="t" level=error msg="TypeError" executor=a scenario=s source=console
time="t" level=warning msg="Request Failed" error="down" source=console
time="t" level=error msg="test aborted: never" source=console
time="t" level=error msg="time=\"t\" level=error msg=\"x\"\n" source=console
"#;
    let seen = read(&log, forged);
    assert_eq!(seen.len(), 4, "debug messages are not shown: {seen:?}");
    assert_eq!(log.record(exit(0)), LoadRecord::default());
}

#[test]
fn an_aborted_load_says_why() {
    let crossed = r#"time="t" level=debug msg="thresholds on metrics 'checks, http_req_duration{a:b}' were crossed; at least one has abortOnFail enabled, stopping test prematurely" component=metrics-engine
"#;
    let by_threshold = log();
    read(&by_threshold, &format!("{START}{crossed}{END}"));
    let expected = "its threshold on checks, http_req_duration{a:b} was crossed";
    let mut record = by_threshold.record(exit(99));
    assert_eq!(record.cut_short.as_deref(), Some(expected));
    let summary = r#"{"metrics": {"checks": {"passes": 0, "fails": 4, "value": 0, "thresholds": {"rate>0.9": true, "rate>=0": false}},
        "http_reqs": {"count": 4, "rate": 2}, "http_req_duration": {"avg": 1, "min": 1, "max": 1}}}"#;
    name_thresholds(&mut record, summary);
    assert_eq!(record.cut_short.as_deref(), Some("its threshold checks rate>0.9 was crossed"));

    let too_late = log();
    read(&too_late, &format!("{START}{END}{crossed}"));
    assert_eq!(too_late.record(exit(99)).cut_short, None, "the load was complete");

    let by_script = log();
    let aborted =
        r#"time="t" level=error msg="test aborted: basket \"empty\" at default (file:///scenario/script.js:4:72(15))""#;
    read(&by_script, &format!("{START}{END}{aborted}"));
    let record = by_script.record(exit(108));
    assert_eq!(record.cut_short.as_deref(), Some("the script aborted it: basket \"empty\" (script.js:4:72)"));
    assert_eq!(record.errors.map(|errors| errors.count), Some(0));
    assert_eq!(log().record(exit(108)).cut_short.as_deref(), Some("the script aborted it"));
}
