//! The messages of Prometheus remote write 1.0 that k6 sends. The tags are the protocol's; other fields (exemplars,
//! negative and float buckets, metadata) are skipped when decoding.

use brewbench_wire::histogram::Histogram;

/// The values of one metric with one set of labels.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimeSeries {
    /// The metric's name as `__name__`, and its tags; sorted by name.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    /// Values of counters, gauges and rates.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    /// Values of trends.
    #[prost(message, repeated, tag = "4")]
    pub histograms: Vec<NativeHistogram>,
}

impl TimeSeries {
    /// Returns the value of a tag.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|label| label.name == name).map(|label| label.value.as_str())
    }
}

/// A tag.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Label {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value; never empty.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A value at a time.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Sample {
    /// The value, in the metric's base unit (seconds, bytes). [`STALE`] marks the end of the series.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Unix milliseconds.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

/// The NaN bit pattern that marks the end of a series.
pub const STALE: u64 = 0x7ff0_0000_0000_0002;

/// An exponential histogram, cumulative since the start of k6.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NativeHistogram {
    /// Number of observations.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The sum of all observations.
    #[prost(double, tag = "3")]
    pub sum: f64,
    /// Buckets grow by the factor 2^(2^-schema).
    #[prost(sint32, tag = "4")]
    pub schema: i32,
    /// Observations up to this count as zero.
    #[prost(double, tag = "5")]
    pub zero_threshold: f64,
    /// Number of zero observations.
    #[prost(uint64, tag = "6")]
    pub zero_count: u64,
    /// The buckets that the deltas describe.
    #[prost(message, repeated, tag = "11")]
    pub positive_spans: Vec<BucketSpan>,
    /// The count of each bucket minus that of the previous one.
    #[prost(sint64, repeated, tag = "12")]
    pub positive_deltas: Vec<i64>,
    /// Unix milliseconds.
    #[prost(int64, tag = "15")]
    pub timestamp: i64,
}

impl NativeHistogram {
    /// Returns what k6 sent; `None` if it is inconsistent or k6 would not send it.
    pub fn read(&self) -> Option<Histogram> {
        // k6 uses 2^-128; above a nanosecond, the zero bucket would hide latencies.
        if !(0.0..1e-9).contains(&self.zero_threshold) {
            return None;
        }
        let mut deltas = self.positive_deltas.iter();
        let (mut buckets, mut index, mut count) = (Vec::new(), 0_i32, 0_i64);
        for span in &self.positive_spans {
            index = index.checked_add(span.offset)?;
            for _ in 0..span.length {
                count = count.checked_add(*deltas.next()?)?;
                buckets.push((index, u64::try_from(count).ok()?));
                index = index.checked_add(1)?;
            }
        }
        let sum_ns = nanoseconds(self.sum);
        let read = Histogram::new(i8::try_from(self.schema).ok()?, self.zero_count, sum_ns, buckets)?;
        (deltas.next().is_none() && read.total() == self.count).then_some(read)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casting saturates, and no number is zero")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Adjacent buckets.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BucketSpan {
    /// Gap to the previous span in buckets; for the first span, the index of its first bucket.
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    /// Number of buckets.
    #[prost(uint32, tag = "2")]
    pub length: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn k6_message() -> NativeHistogram {
        let span = |offset, length| BucketSpan { offset, length };
        NativeHistogram {
            count: 10,
            sum: 0.5,
            schema: 3,
            zero_threshold: 2.938_735_877_055_719e-39,
            zero_count: 1,
            positive_spans: vec![span(-3, 2), span(2, 1)],
            positive_deltas: vec![2, 1, 1],
            timestamp: 0,
        }
    }

    #[test]
    fn spans_and_deltas_become_buckets() {
        let read = k6_message().read().expect("read");
        assert_eq!(read.buckets().collect::<Vec<_>>(), [(-3, 2), (-2, 3), (1, 4)]);
        assert_eq!((read.total(), read.zero(), read.sum_ns()), (10, 1, 500_000_000));
        assert_eq!(read.mean_ms(), Some(50.0));
    }

    #[test]
    fn an_inconsistent_message_is_rejected() {
        type Change = fn(&mut NativeHistogram);
        let changes: [Change; 9] = [
            |h| h.count = 11,
            |h| h.positive_deltas = vec![2, 1],
            |h| h.positive_deltas.push(0),
            |h| h.positive_deltas = vec![2, -3, 4],
            |h| h.positive_deltas = vec![i64::MAX, 1, 0],
            |h| h.positive_spans[0].length = u32::MAX,
            |h| h.positive_spans[0].offset = i32::MAX,
            |h| h.schema = -53,
            |h| h.zero_threshold = 0.001,
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut message = k6_message();
            change(&mut message);
            assert_eq!(message.read(), None, "{number}");
        }
    }
}
