//! k6's end-of-test JSON in each of its shapes.

/// Headline figures of one summary; latencies in ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Requests in all.
    pub requests: u64,
    /// Requests that failed.
    pub failed: Option<u64>,
    /// Checks that held.
    pub checks_passed: Option<u64>,
    /// Checks that did not hold.
    pub checks_failed: Option<u64>,
    /// Iterations that k6 could not start in time.
    pub dropped_iterations: Option<u64>,
}
