//! What happened during a run, second by second, as it crosses the wire and is stored.
//!
//! Warm-up and measurement are two [`Stretch`]es that nothing mixes. Both have the figures of the load, from k6, and of
//! the machine, from the kernel, by the same clock. Everything is a count in whole numbers: rates and shares come of
//! counts and the time between two points, so points can be added up and nothing is ever averaged.

mod columns;
mod pack;
mod portion;

use serde::{Deserialize, Serialize};

use crate::series::histogram::Histogram;

pub use pack::{Damaged, Packed};
pub use portion::{Part, Portion};

/// The series of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The warm-up, if there was one.
    pub warm_up: Option<Stretch>,
    /// The measured phase.
    pub measured: Option<Stretch>,
}

/// One phase of a run in which k6 ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// When the first second began, by the agent's clock; unix milliseconds.
    pub start_ms: i64,
    /// What k6 told, in ascending order.
    pub seconds: Vec<Second>,
    /// What the kernel told, in ascending order.
    pub usage: Vec<Usage>,
    /// What is known to be missing.
    pub lacks: Lacks,
}

/// What the load did between the second before (or the start) and `until_ms`: about a second, but more in the past of
/// very long runs and where something is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Its end, milliseconds after the start of the stretch.
    pub until_ms: u32,
    /// Virtual users at its end; nothing where k6 did not say, as in the first second.
    pub vus: Option<u64>,
    /// Iterations of the script that ended.
    pub iterations: u64,
    /// Iterations that could not begin when they should, for want of virtual users.
    pub dropped_iterations: u64,
    /// Received by k6.
    pub received_bytes: u64,
    /// Sent by k6.
    pub sent_bytes: u64,
    /// Latencies of the requests that succeeded.
    pub succeeded: Histogram,
    /// Latencies of the requests that failed.
    pub failed: Histogram,
}

impl Second {
    /// How many requests ended.
    pub fn requests(&self) -> u64 {
        self.succeeded.total().saturating_add(self.failed.total())
    }

    /// Adds what happened right after it.
    pub fn add(&mut self, next: Self) {
        let Self { until_ms, vus, iterations, dropped_iterations, received_bytes, sent_bytes, succeeded, failed } =
            next;
        self.until_ms = self.until_ms.max(until_ms);
        self.vus = vus.or(self.vus);
        self.iterations = self.iterations.saturating_add(iterations);
        self.dropped_iterations = self.dropped_iterations.saturating_add(dropped_iterations);
        self.received_bytes = self.received_bytes.saturating_add(received_bytes);
        self.sent_bytes = self.sent_bytes.saturating_add(sent_bytes);
        self.succeeded.add(&succeeded);
        self.failed.add(&failed);
    }
}

/// What was used between the sample before and `at_ms`. The first sample of a stretch has no such time: it tells levels
/// only, and its counts are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// When it was sampled, milliseconds after the start of the stretch; negative before it.
    pub at_ms: i32,
    /// By the target's processes.
    pub target: Consumption,
    /// By k6.
    pub generator: Consumption,
    /// By everything on the machine.
    pub host: Host,
}

impl Usage {
    /// Adds the sample that was taken next.
    pub fn add(&mut self, next: Self) {
        let Self { at_ms, target, generator, host } = next;
        let Host { user_us, system_us, steal_us, iowait_us, load_milli, received_bytes, sent_bytes } = host;
        self.at_ms = at_ms;
        self.target.add(target);
        self.generator.add(generator);
        self.host = Host {
            user_us: self.host.user_us.saturating_add(user_us),
            system_us: self.host.system_us.saturating_add(system_us),
            steal_us: self.host.steal_us.saturating_add(steal_us),
            iowait_us: self.host.iowait_us.saturating_add(iowait_us),
            load_milli,
            received_bytes: self.host.received_bytes.saturating_add(received_bytes),
            sent_bytes: self.host.sent_bytes.saturating_add(sent_bytes),
        };
    }
}

/// What one side of a run used; nothing where the machine does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumption {
    /// CPU time since the sample before, microseconds.
    pub cpu_us: Option<u64>,
    /// Time since the sample before in which its quota forbade it to run, microseconds.
    pub throttled_us: Option<u64>,
    /// Memory in use, without what the kernel can take back at once.
    pub memory_bytes: Option<u64>,
    /// The highest memory use so far.
    pub peak_memory_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Open files, sockets among them.
    pub open_files: Option<u64>,
}

impl Consumption {
    fn add(&mut self, next: Self) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        *self = Self {
            cpu_us: sum(self.cpu_us, next.cpu_us),
            throttled_us: sum(self.throttled_us, next.throttled_us),
            ..next
        };
    }
}

/// What the whole machine did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// CPU time in programs since the sample before, all cores together, microseconds.
    pub user_us: u64,
    /// In the kernel, interrupts included.
    pub system_us: u64,
    /// Taken by the hypervisor for somebody else.
    pub steal_us: u64,
    /// Idle while something waited for a disk.
    pub iowait_us: u64,
    /// Load average over a minute, in thousandths.
    pub load_milli: u64,
    /// Received since the sample before by all network interfaces but loopback.
    pub received_bytes: u64,
    /// Sent since the sample before.
    pub sent_bytes: u64,
}

/// What a stretch is known to lack, or to have that it should not. All are 0 in an ordinary run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacks {
    /// Seconds for which nothing came; what happened in them is in the second that follows.
    pub missing_seconds: u64,
    /// Pushes that came too early; what they told is in the second before.
    pub doubled_seconds: u64,
    /// Times that counters went backwards: k6 began anew.
    pub restarts: u64,
    /// Pushes, or series in them, that could not be understood.
    pub damaged: u64,
    /// Figures that were left out because the script has too many different tags.
    pub left_out: u64,
    /// 1 when k6 did not say that it has told everything, as it does when it ends by itself.
    pub unfinished: u64,
}
