//! The messages of Prometheus remote write 1.0 that k6 sends. The tags are the protocol's; other fields (exemplars,
//! negative and float buckets, metadata) are skipped when decoding.

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
