//! Reads what k6 prints during the measured load: when its scenarios start and end, exceptions, failed requests and
//! interrupted iterations, of which k6 has no metrics. Debug messages, banner and progress stay out of the log that
//! people see.
//!
//! Times are those at which a line arrives, because k6 writes whole seconds.

mod entry;
mod progress;
mod tally;

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brewbench_wire::load_record::{LoadRecord, shortened};
use brewbench_wire::reports::read::parse_own;
use entry::Entry;
use tally::Tally;
use tokio::sync::Notify;

use super::{archive, exit};
use crate::sandbox::lines::Observer;
use crate::series::clock::Clock;

const RUN_STARTS: &str = "Start of test run";
const LOAD_STARTS: &str = "Start all executors...";
const REGULAR_END: &str = "Regular duration is done, waiting for iterations to gracefully finish";
const EXECUTOR_ENDS: &str = "Executor finished successfully";
const TEARDOWN_STARTS: [&str; 2] = ["Running teardown()...", "teardown() is not defined or not exported, skipping!"];
const TEARDOWN_ENDS: [&str; 3] =
    ["Test finished cleanly", "Test finished with an error", "Waiting for metrics and traces processing to finish..."];
/// Messages at which usage is sampled.
const EDGES: [&str; 3] = [LOAD_STARTS, REGULAR_END, EXECUTOR_ENDS];
const SUMMARY: &str = "Generating the end-of-test summary...";
const ABORTED_BY_THRESHOLD: &str = "' were crossed; at least one has abortOnFail enabled, stopping test prematurely";
const ABORTED_BY_SCRIPT: &str = "test aborted";
const CROSSED: &str = "thresholds on metrics '";
const REQUEST_FAILED: &str = "Request Failed";

/// The log of one k6 process, while it is written and after.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    clock: Clock,
    /// Notified when the load starts and ends.
    edges: Option<Arc<Notify>>,
    run_start: Option<i64>,
    load_start: Option<i64>,
    load_end: Option<i64>,
    teardown_start: Option<i64>,
    teardown_end: Option<i64>,
    /// Number of scenarios.
    scenarios: usize,
    /// When each scenario started no more iterations.
    regular_ends: BTreeMap<String, i64>,
    /// The metrics whose thresholds ended the load before all scenarios did.
    crossed: Option<String>,
    /// Why the script aborted the test.
    aborted: Option<String>,
    interrupted: Option<u64>,
    exceptions: Tally,
    errors: Tally,
    /// Whether the last line was progress: bars follow.
    is_progress: bool,
    has_summary: bool,
}

impl Log {
    /// Creates an empty log, whose times are those of a clock.
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Mutex::new(State {
            clock,
            edges: None,
            run_start: None,
            load_start: None,
            load_end: None,
            teardown_start: None,
            teardown_end: None,
            scenarios: 0,
            regular_ends: BTreeMap::new(),
            crossed: None,
            aborted: None,
            interrupted: None,
            exceptions: Tally::default(),
            errors: Tally::default(),
            is_progress: false,
            has_summary: false,
        })))
    }

    /// Notifies at the start of the load, and at the end of each scenario.
    #[must_use]
    pub fn notifying(self, edges: Arc<Notify>) -> Self {
        self.state().edges = Some(edges);
        self
    }

    /// Returns the reader of the output.
    pub fn observer(&self) -> Observer {
        let log = self.clone();
        Box::new(move |line| log.state().read(line))
    }

    /// Returns what was reported, once k6 has exited.
    pub fn record(&self, status: ExitStatus) -> LoadRecord {
        self.state().record(status)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reads a line; returns whether people see it.
    fn read(&mut self, line: &str) -> bool {
        if let Some(entry) = Entry::parse(line) {
            self.is_progress = false;
            if !entry.is_of_script() {
                self.observe(&entry);
            }
            return entry.level != "debug";
        }
        let bars_follow = std::mem::take(&mut self.is_progress);
        if let Some(count) = progress::interrupted(line) {
            (self.interrupted, self.is_progress) = (Some(count), true);
            return false;
        }
        if progress::is_bar(line) && (bars_follow || !self.has_summary) {
            self.is_progress = true;
            return false;
        }
        if self.has_summary {
            return true;
        }
        let is_introduction = self.run_start.is_none() && progress::is_introduction(line);
        !is_introduction && !line.trim().is_empty()
    }

    fn observe(&mut self, entry: &Entry<'_>) {
        match entry.level {
            "debug" => self.note_event(entry, self.clock.now_ms()),
            "error" => self.note_error(entry),
            "warning" if entry.message() == REQUEST_FAILED => {
                let error = entry.raw("error").unwrap_or_default();
                self.errors.add(error, || reason(&entry.get("error").unwrap_or_default()).to_owned());
            }
            _ => {}
        }
    }

    fn note_event(&mut self, entry: &Entry<'_>, now_ms: i64) {
        let message = entry.message();
        if let Some(edges) = self.edges.as_ref().filter(|_| EDGES.contains(&message.as_ref())) {
            edges.notify_one();
        }
        match message.as_ref() {
            RUN_STARTS => {
                self.run_start = Some(now_ms);
                self.scenarios = entry.get("executorsCount").and_then(|count| count.parse().ok()).unwrap_or(0);
            }
            LOAD_STARTS => self.load_start = Some(now_ms),
            REGULAR_END => self.end_of(entry.get("scenario").as_deref(), now_ms),
            EXECUTOR_ENDS => {
                self.load_end = Some(now_ms);
                self.end_of(entry.get("executor").as_deref(), now_ms);
            }
            SUMMARY => self.has_summary = true,
            start if TEARDOWN_STARTS.contains(&start) => self.teardown_start = Some(now_ms),
            end if TEARDOWN_ENDS.contains(&end) => {
                self.teardown_end = self.teardown_end.or(self.teardown_start.map(|_| now_ms));
            }
            other => {
                let crossed = other.strip_prefix(CROSSED).and_then(|rest| rest.strip_suffix(ABORTED_BY_THRESHOLD));
                // After its time a load is complete, except for iterations in progress.
                if let Some(metrics) = crossed.filter(|_| self.regular_ends.len() < self.scenarios) {
                    self.crossed = Some(metrics.to_owned());
                }
            }
        }
    }

    fn end_of(&mut self, scenario: Option<&str>, now_ms: i64) {
        self.regular_ends.entry(scenario.unwrap_or_default().to_owned()).or_insert(now_ms);
    }

    fn note_error(&mut self, entry: &Entry<'_>) {
        let raw = entry.raw_message();
        if entry.raw("executor").is_some() && entry.raw("scenario").is_some() {
            return self.exceptions.add(raw, || exception(&entry.message()));
        }
        let message = entry.message();
        if let Some(why) = message.strip_prefix(ABORTED_BY_SCRIPT) {
            self.aborted = Some(exception(why.trim_start_matches(": ")));
        } else if !message.starts_with(CROSSED) {
            self.errors.add(raw, || exception(&message));
        }
    }

    fn record(&self, status: ExitStatus) -> LoadRecord {
        let between = |from: Option<i64>, until: Option<i64>| u64::try_from(until?.saturating_sub(from?)).ok();
        let regular_end = self.regular_ends.values().copied().max().map(|end| end.min(self.load_end.unwrap_or(end)));
        let is_known = self.run_start.is_some();
        LoadRecord {
            open_ms: None,
            load_start_ms: self.load_start,
            setup_ms: between(self.run_start, self.load_start),
            regular_ms: between(self.load_start, regular_end),
            load_ms: between(self.load_start, self.load_end),
            teardown_ms: between(self.teardown_start, self.teardown_end),
            interrupted_iterations: self.interrupted,
            exceptions: is_known.then(|| self.exceptions.messages()),
            errors: is_known.then(|| self.errors.messages()),
            cut_short: self.cut_short(status),
            rps_limit: None,
        }
    }

    fn cut_short(&self, status: ExitStatus) -> Option<String> {
        if exit::is_aborted(status) {
            let why = self.aborted.as_ref().filter(|why| !why.is_empty());
            return Some(why.map_or("the script aborted it".to_owned(), |why| format!("the script aborted it: {why}")));
        }
        self.crossed.as_ref().map(|metrics| format!("its threshold on {metrics} was crossed"))
    }
}

/// Names the crossed thresholds that ended a load, from the summary.
pub fn name_thresholds(record: &mut LoadRecord, summary: &str) {
    let Some(cut_short) = &mut record.cut_short else { return };
    let metrics = cut_short.strip_prefix("its threshold on ").and_then(|rest| rest.strip_suffix(" was crossed"));
    let (Some(metrics), Ok(summary)) = (metrics, parse_own(summary.as_bytes())) else { return };
    let named = summary.metrics.iter().filter(|(name, _)| metrics.split(", ").any(|metric| metric == *name));
    let crossed = named.flat_map(|(name, metric)| {
        let crossed = metric.thresholds.iter().filter(|threshold| threshold.passed == Some(false));
        crossed.map(move |threshold| format!("{name} {}", threshold.expression))
    });
    let crossed = crossed.collect::<Vec<_>>().join(", ");
    if !crossed.is_empty() {
        *cut_short = shortened(&format!("its threshold {crossed} was crossed"));
    }
}

/// Returns the text of an exception with its place in the script, from its message and stack:
/// `TypeError: …` and `at default (file:///scenario/lib/script.js:3:12(4))`.
fn exception(message: &str) -> String {
    let (text, stack) = message.split_once("\n\tat ").or_else(|| message.rsplit_once(" at ")).unwrap_or((message, ""));
    let place = stack.split_once("(file://").and_then(|(_, rest)| rest.split_once('(')).map(|(place, _)| place);
    match place {
        Some(place) => format!("{} ({})", text.trim(), place.strip_prefix(archive::FOLDER).unwrap_or(place)),
        None => message.trim().to_owned(),
    }
}

/// Returns a request's error without its address: `Get "http://…": dial tcp: …`.
fn reason(error: &str) -> &str {
    let address = error.split_once(" \"").filter(|(method, _)| method.chars().all(char::is_alphabetic));
    address.and_then(|(_, rest)| rest.split_once("\": ")).map_or(error, |(_, reason)| reason)
}

#[cfg(test)]
mod tests;
