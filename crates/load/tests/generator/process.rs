//! The program: its input, its output and its signals.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use brewbench_load::events::{Event, Summary};
use brewbench_load::plan::Plan;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::server::{OK, Server};
use super::{at_least, closed, open, plan};

struct Program {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts it with a plan, and leaves its input open.
    fn start(plan: &Plan) -> Self {
        Self::start_as(Command::new(env!("CARGO_BIN_EXE_brewbench-load")), plan)
    }

    fn start_as(mut command: Command, plan: &Plan) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut program = Self { child, lines };
        program.write(&serde_json::to_string_pretty(plan).expect("a plan"));
        program
    }

    fn write(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{line}").expect("written");
    }

    fn next(&mut self) -> Option<Event> {
        let line = self.lines.next()?.expect("a line");
        Some(serde_json::from_str(&line).expect("an event"))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("an id");
        kill(Pid::from_raw(pid), signal).expect("a process");
    }

    /// Reads until the summary, and checks that the program ends well.
    fn summary(mut self) -> Summary {
        let mut last = None;
        while let Some(event) = self.next() {
            last = Some(event);
        }
        assert!(self.child.wait().expect("an end").success());
        match last {
            Some(Event::Summary(summary)) => *summary,
            other => panic!("{other:?}"),
        }
    }

    /// Returns what it wrote to standard error before it failed.
    fn failure(mut self) -> String {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("text")
    }
}

#[test]
fn a_paused_load_starts_with_the_line_start() {
    let server = Server::answering(OK);
    let mut plan = plan(&server, closed(1));
    plan.paused = true;
    let mut program = Program::start(&plan);
    assert_eq!(program.next(), Some(Event::Ready));
    assert_eq!(server.connections(), 0);
    program.write("start");
    assert_eq!(program.next(), Some(Event::Started));
    assert!(matches!(program.next(), Some(Event::Second(_))));
    assert_eq!(program.summary().requests, server.responses());
}

#[test]
fn a_paused_load_whose_input_ends_or_that_is_terminated_never_starts() {
    let server = Server::answering(OK);
    let mut plan = plan(&server, closed(1));
    plan.paused = true;
    for terminates in [false, true] {
        let mut program = Program::start(&plan);
        assert_eq!(program.next(), Some(Event::Ready));
        if terminates {
            program.signal(Signal::SIGTERM);
        } else {
            drop(program.child.stdin.take());
        }
        assert_eq!(program.next(), None);
        assert!(program.child.wait().expect("an end").success());
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn sigterm_ends_a_load_with_the_summary_so_far() {
    let server = Server::answering(OK);
    let mut program = Program::start(&plan(&server, open(100, 60, 5)));
    assert_eq!(program.next(), Some(Event::Ready));
    assert_eq!(program.next(), Some(Event::Started));
    assert!(matches!(program.next(), Some(Event::Second(_))));
    program.signal(Signal::SIGTERM);
    let summary = program.summary();
    assert!(summary.interrupted && summary.elapsed_ms < summary.planned_ms, "{summary:?}");
    // The target may not have read what was interrupted.
    let sent = summary.requests..=summary.requests + summary.interrupted_requests;
    assert!(summary.requests > 0 && sent.contains(&server.requests()), "{summary:?}");
}

#[test]
fn a_frozen_generator_shows_in_the_latencies_of_an_open_load() {
    let server = Server::answering(OK);
    let mut program = Program::start(&plan(&server, open(200, 4, 10)));
    assert_eq!(program.next(), Some(Event::Ready));
    assert_eq!(program.next(), Some(Event::Started));
    assert!(matches!(program.next(), Some(Event::Second(_))));
    program.signal(Signal::SIGSTOP);
    thread::sleep(Duration::from_secs(1));
    program.signal(Signal::SIGCONT);
    let summary = program.summary();
    assert_eq!((summary.requests + summary.dropped, summary.failed), (800, 0));
    // Those intended in the first half of the freeze are at least half a second late.
    assert!(at_least(&summary, 500.0) >= 95, "{}", at_least(&summary, 500.0));
    assert!(summary.scheduling.max_ns >= Some(900_000_000), "the generator is to blame");
}

#[test]
fn plans_that_can_not_be_executed_are_refused_with_a_sentence() {
    let server = Server::answering(OK);
    let mut broken = plan(&server, closed(1));
    broken.list.requests[0].weight = 0;
    assert_eq!(
        Program::start(&broken).failure(),
        "weight: with 0 it is never sent: use 1 or more, or remove the request\n"
    );
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 200 && exec \"$0\"", env!("CARGO_BIN_EXE_brewbench-load")]);
    let sentence = Program::start_as(limited, &plan(&server, closed(500))).failure();
    assert!(
        sentence.starts_with("load: 500 connections need 564 open files, and this load generator may open 200: "),
        "{sentence}"
    );
    let mut nonsense = Command::new(env!("CARGO_BIN_EXE_brewbench-load"));
    let nonsense = nonsense.stdin(Stdio::null()).output().expect("the program");
    assert!(String::from_utf8_lossy(&nonsense.stderr).starts_with("the plan on standard input can't be read: "));
    assert_eq!(server.connections(), 0);
}
