//! Units and definitions of metrics in words, for tooltips and the reference. Pure.

use crate::metrics::{
    Metric,
    definition::{Better, Unit},
};

const MEMORY: &str = "The most memory that the target held, sampled once a second: anonymous and shared memory, and that of \
    the kernel for it, without file cache.";

const WORKING_SET: &str = "The most memory that the target had in use, sampled once a second, with the files in the cache that \
    were used more than once.";

const FILE_CACHE: &str = "The most file cache of the target, sampled once a second: files that it has read or written, which the \
    kernel keeps while nothing else needs the memory.";

impl Unit {
    /// Returns its name: `requests/s`, `ms`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestsPerS => "requests/s",
            Self::Ms => "ms",
            Self::Seconds => "s",
            Self::Share => "share, 0 to 1",
            Self::Bytes => "bytes",
            Self::BytesPerS => "bytes/s",
            Self::Count => "count",
            Self::PerRequest => "per request",
        }
    }
}

impl Metric {
    /// Returns its unit and direction: `ms, lower is better`.
    pub fn unit_and_direction(self) -> String {
        let unit = match self.def().unit {
            Unit::Share => "%",
            unit => unit.name(),
        };
        match self.def().better {
            Some(Better::Higher) => format!("{unit}, higher is better"),
            Some(Better::Lower) => format!("{unit}, lower is better"),
            None => unit.to_owned(),
        }
    }

    /// Returns what it measures, in one or two sentences.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Rps => "All requests of the measured phase, failed ones included, divided by its length.",
            Self::AvgMs => "The mean latency of all requests of the measured phase, failed ones included.",
            Self::P50Ms => "The median latency: half of all requests, failed ones included, were at most this slow.",
            Self::P90Ms => "The latency that 90 % of all requests, failed ones included, did not exceed.",
            Self::P95Ms => "The latency that 95 % of all requests, failed ones included, did not exceed.",
            Self::P99Ms => "The latency that 99 % of all requests, failed ones included, did not exceed.",
            Self::P999Ms => "The latency that 99.9 % of all requests, failed ones included, did not exceed.",
            Self::MaxMs => "The latency of the slowest request of the measured phase, failed ones included.",
            Self::ErrorRate => "Failed requests divided by all requests; k6 reports it as http_req_failed.",
            Self::CpuMs => "CPU time of all processes of the target in the measured phase, divided by the requests.",
            Self::Memory => MEMORY,
            Self::WorkingSet => WORKING_SET,
            Self::ReceivedPerS => {
                "Bytes of responses received per second of the measured phase. It follows from the responses, so \
                 neither direction is better."
            }
            Self::VoluntarySwitches => {
                "Context switches because threads of the target waited, for example for a request or a lock, divided by \
                 the requests."
            }
            Self::InvoluntarySwitches => {
                "Context switches because other threads were given the processor of the target's threads, divided by the \
                 requests."
            }
            Self::PageFaults => {
                "Page faults of the target, with and without reading from disk, divided by the requests."
            }
            Self::Instructions => "Instructions of the target, in user and kernel mode, divided by the requests.",
            Self::Cycles => "Processor cycles of the target, in user and kernel mode, divided by the requests.",
            Self::CacheMisses => "Misses of the last-level cache by the target, divided by the requests.",
            Self::BranchMisses => {
                "Branches of the target that the processor predicted wrongly, divided by the requests."
            }
            Self::ThrottledShare => {
                "The share of the measured phase, averaged over its cores, in which the CPU quota of its machine size \
                 throttled the target."
            }
            Self::Startup => {
                "Time from starting the target's process to its first verified response. The agent asks every \
                 millisecond at first; the interval grows to 1 % of the time waited, up to 10 ms."
            }
            Self::IdleMemory => {
                "Memory that the target held after the idle wait, before the warm-up; counted as memory is."
            }
            Self::FileCache => FILE_CACHE,
            Self::Requests => "All requests of the measured phase, failed ones included.",
            Self::Failed => "Requests of the measured phase that the load generator counted as failed.",
            Self::MinMs => "The latency of the fastest request of the measured phase, failed ones included.",
            Self::TtfbP95Ms => {
                "The time from the end of sending a request to the first byte of its response that 95 % of all requests \
                 did not exceed; k6 reports it as http_req_waiting."
            }
            Self::MeasuredS => {
                "The length of the load, without the warm-up, setup and teardown; of an import, the time of the test."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::METRICS;

    #[test]
    fn every_definition_is_a_sentence_of_its_own() {
        let mut texts: Vec<&str> = METRICS.iter().map(|def| def.metric.definition()).collect();
        assert!(texts.iter().all(|text| text.ends_with('.') && text.len() > 40), "{texts:#?}");
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), METRICS.len());
    }

    #[test]
    fn units_name_the_better_direction() {
        assert_eq!(Metric::P99Ms.unit_and_direction(), "ms, lower is better");
        assert_eq!(Metric::Rps.unit_and_direction(), "requests/s, higher is better");
        assert_eq!(Metric::ErrorRate.unit_and_direction(), "%, lower is better");
        assert_eq!(Metric::ReceivedPerS.unit_and_direction(), "bytes/s");
    }
}
