//! The messages of Prometheus' remote write, version 1, as far as k6 sends them. The numbers are the protocol's; fields
//! that are not named here (exemplars, negative and float buckets, metadata) are skipped when decoding.

/// The figures of one metric under one set of labels.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimeSeries {
    /// Its name, under `__name__`, and its tags; sorted by name.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    /// Counters, gauges and rates: one number each.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    /// Trends.
    #[prost(message, repeated, tag = "4")]
    pub histograms: Vec<NativeHistogram>,
}

impl TimeSeries {
    /// The value of a tag.
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

/// A number at a time.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Sample {
    /// The number, in the metric's base unit (seconds, bytes). [`STALE`] says that the series has ended.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Unix milliseconds.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

/// The bits of the number by which a series says that it has ended: one of the many that are not a number.
pub const STALE: u64 = 0x7ff0_0000_0000_0002;

/// An exponential histogram, cumulative since the start of k6.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NativeHistogram {
    /// Observations in all.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// The sum of all observations.
    #[prost(double, tag = "3")]
    pub sum: f64,
    /// Buckets grow by the factor 2^(2^-schema).
    #[prost(sint32, tag = "4")]
    pub schema: i32,
    /// Observations not above this count as zero.
    #[prost(double, tag = "5")]
    pub zero_threshold: f64,
    /// How many there were of them.
    #[prost(uint64, tag = "6")]
    pub zero_count: u64,
    /// Which buckets the deltas are of.
    #[prost(message, repeated, tag = "11")]
    pub positive_spans: Vec<BucketSpan>,
    /// The count of each bucket, less that of the one before.
    #[prost(sint64, repeated, tag = "12")]
    pub positive_deltas: Vec<i64>,
    /// Unix milliseconds.
    #[prost(int64, tag = "15")]
    pub timestamp: i64,
}

/// Neighbouring buckets.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BucketSpan {
    /// Buckets left out since the previous span; for the first one the index of its first bucket.
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    /// How many.
    #[prost(uint32, tag = "2")]
    pub length: u32,
}
