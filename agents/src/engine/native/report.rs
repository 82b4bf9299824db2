//! Reads the events of the native load generator: its seconds go to the recording, its summary stays here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brewbench_load::events::{Event, Second, Summary};
use brewbench_wire::load_record::{LoadRecord, Messages};
use brewbench_wire::series;
use brewbench_wire::work_done::WorkDone;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::engine::k6::receiver::Arrivals;
use crate::series::clock::Clock;
use crate::series::recording::Recording;

/// Why there is no result.
pub const NO_SUMMARY: &str = "the load generator left no summary";

/// A longer line ends the report. Histograms have a few thousand buckets at most.
const MAX_LINE: u64 = 16 << 20;

/// Buckets of the series are 2.2 % wide, so that an hour of it can be stored. Those of the summary are finer.
const SCHEMA: i8 = 5;

/// How long the rest of the events may take to arrive after the exit, on a busy machine.
const REST: Duration = Duration::from_secs(5);

/// What a native load generator reports, while it runs and after.
#[derive(Debug)]
pub struct Report {
    state: Arc<Mutex<State>>,
    ready: watch::Receiver<bool>,
    reader: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    /// When the load started, on the agent's clock.
    start_ms: Option<i64>,
    summary: Option<Box<Summary>>,
}

/// Takes the seconds of a load.
struct Feed {
    clock: Clock,
    arrivals: Arrivals,
    edges: Arc<Notify>,
}

impl Report {
    /// Reads events until the end of the output.
    pub(super) fn read(output: Receiver, recording: Option<&Recording>) -> Self {
        let state = Arc::<Mutex<State>>::default();
        let (is_ready, ready) = watch::channel(false);
        let feed = recording.map(|recording| Feed {
            clock: recording.clock(),
            arrivals: recording.arrivals(),
            edges: recording.edges(),
        });
        let reader = tokio::spawn(read(output, Arc::clone(&state), is_ready, feed));
        Self { state, ready, reader }
    }

    /// Returns whether it is ready for its load.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.clone()
    }

    /// Waits for the events of a process that has ended.
    pub async fn finish(&mut self) {
        if !self.reader.is_finished() {
            let _ = timeout(REST, &mut self.reader).await;
        }
    }

    /// Returns the course of the load.
    pub fn record(&self) -> LoadRecord {
        let state = lock(&self.state);
        let Some(summary) = &state.summary else {
            return LoadRecord { load_start_ms: state.start_ms, ..LoadRecord::default() };
        };
        LoadRecord {
            load_start_ms: state.start_ms,
            setup_ms: Some(0),
            regular_ms: Some(summary.planned_ms.min(summary.elapsed_ms)),
            load_ms: Some(summary.elapsed_ms),
            open_ms: summary.open_ms,
            teardown_ms: Some(0),
            interrupted_iterations: Some(summary.interrupted_requests),
            errors: Some(failures(summary, false)),
            cut_short: summary.interrupted.then(|| "it was interrupted".to_owned()),
            ..LoadRecord::default()
        }
    }

    /// Returns the summary as JSON. The error is a sentence: also about what this machine could not do.
    pub fn summary(&self) -> Result<String, String> {
        let state = lock(&self.state);
        let summary = state.summary.as_ref().ok_or(NO_SUMMARY)?;
        if let Some(fault) = &summary.fault {
            return Err(format!("the load generator could not generate the load: {fault}"));
        }
        serde_json::to_string(summary).map_err(|error| error.to_string())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read(output: Receiver, state: Arc<Mutex<State>>, ready: watch::Sender<bool>, feed: Option<Feed>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        match serde_json::from_slice(&line) {
            Ok(Event::Ready) => {
                ready.send_replace(true);
            }
            Ok(Event::Started) => started(&state, feed.as_ref()),
            Ok(Event::Second(second)) => {
                if let Some((feed, start_ms)) = feed.as_ref().zip(lock(&state).start_ms) {
                    feed.add(*second, start_ms);
                }
            }
            Ok(Event::Summary(summary)) => {
                if let Some((feed, start_ms)) = feed.as_ref().zip(lock(&state).start_ms) {
                    feed.conclude(&summary, start_ms);
                }
                lock(&state).summary = Some(summary);
            }
            Err(error) => {
                tracing::error!(%error, "an event of the load generator can't be read");
                return;
            }
        }
    }
}

fn started(state: &Mutex<State>, feed: Option<&Feed>) {
    if let Some(Feed { clock, arrivals, edges }) = feed {
        let now_ms = clock.now_ms();
        lock(state).start_ms = Some(now_ms);
        arrivals.begin(now_ms);
        edges.notify_one();
    }
}

impl Feed {
    fn add(&self, second: Second, start_ms: i64) {
        let Second { until_ms, requests, bytes_in, bytes_out, connections, dropped, .. } = second;
        let Second { mut succeeded, mut failed_durations, .. } = second;
        succeeded.coarsen(SCHEMA);
        failed_durations.coarsen(SCHEMA);
        let second = series::Second {
            succeeded,
            failed: failed_durations,
            vus: Some(connections),
            iterations: requests,
            dropped_iterations: dropped,
            received_bytes: bytes_in,
            sent_bytes: bytes_out,
            ..series::Second::default()
        };
        self.arrivals.add(&second, start_ms.saturating_add_unsigned(until_ms));
    }

    fn conclude(&self, summary: &Summary, start_ms: i64) {
        self.edges.notify_one();
        self.arrivals.conclude(&work(summary), start_ms.saturating_add_unsigned(summary.elapsed_ms));
    }
}

/// Returns the failures with a complete response, or those without one, each kind with what was first wrong.
fn failures(summary: &Summary, have_response: bool) -> Messages {
    let is_wanted = |kind: &str| matches!(kind, "status" | "length" | "body") == have_response;
    let wanted = summary.errors.iter().filter(|(kind, _)| is_wanted(kind));
    Messages::from_counts(wanted.map(|(kind, of)| (of.first.clone().unwrap_or_else(|| kind.clone()), of.count)))
}

/// Returns the requests by status and protocol.
fn work(summary: &Summary) -> WorkDone {
    let responses = summary.statuses.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let mut statuses: BTreeMap<String, u64> =
        summary.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect();
    let without = summary.requests.saturating_sub(responses);
    if without > 0 {
        statuses.insert("0".to_owned(), without);
    }
    let protocol = if summary.http == "2" { "HTTP/2.0" } else { "HTTP/1.1" };
    WorkDone {
        statuses: Some(statuses),
        protocols: Some(BTreeMap::from([(protocol.to_owned(), responses)])),
        new_connections: Some(summary.opened),
        failures: Some(failures(summary, true)).filter(|failures| failures.count > 0),
    }
    .checked()
}
