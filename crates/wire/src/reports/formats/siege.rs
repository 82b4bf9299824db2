//! siege's output, which is JSON since version 4. Times are seconds with two decimals.

use serde::Deserialize;

use super::format::{Format, Reader};
use crate::reports::report::{Latencies, Population, Report};
use crate::reports::time::Time;

pub(super) const FORMAT: Format = Format {
    name: "siege",
    title: "siege's output",
    tool: "siege",
    limits: "Times have two decimals of a second. There are no percentiles, no statuses and no address.",
    is_rounded: true,
    timeout_ms: Some(30_000.0),
    reader: Reader::Json {
        is: |document| {
            document.has(&["transactions", "availability", "transaction_rate", "longest_transaction"]).into()
        },
        read: |document| Ok(vec![document.read::<Siege>()?.report()]),
    },
};

#[derive(Deserialize)]
struct Siege {
    transactions: u64,
    elapsed_time: f64,
    response_time: f64,
    transaction_rate: f64,
    successful_transactions: u64,
    failed_transactions: u64,
    longest_transaction: f64,
    shortest_transaction: f64,
}

impl Siege {
    fn report(self) -> Report {
        // Transactions have a response, but not all of them an expected one.
        let requests = self.transactions.saturating_add(self.failed_transactions);
        let time = |seconds: f64| Some(Time { error_ms: 5.0, ..Time::of(seconds, 1e3) });
        Report {
            duration: time(self.elapsed_time).filter(|time| time.ms > 0.0),
            requests: Some(requests),
            failed: Some(requests.saturating_sub(self.successful_transactions)),
            rate_per_s: Some(self.transaction_rate),
            latency: Latencies {
                min: time(self.shortest_transaction),
                mean: time(self.response_time),
                max: time(self.longest_transaction),
                of: Population::Responses,
                ..Latencies::default()
            },
            ..Report::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reports::read::read;

    #[test]
    fn its_figures_are_read_after_what_it_prints_before() {
        let siege = include_bytes!("../../../tests/fixtures/siege.txt");
        let report = read(&siege[..]).expect("a result").reports.remove(0);
        assert_eq!((report.requests, report.failed, report.rate_per_s), (Some(11_264), Some(0), Some(5_688.89)));
        let ms = [report.duration, report.latency.min, report.latency.max].map(|time| time.map(|time| time.ms));
        assert_eq!(ms, [Some(1_980.0), Some(0.0), Some(40.0)]);
    }
}
