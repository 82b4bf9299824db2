//! A histogram in JSON, for `#[serde(with)]`: `{"schema":8,"zero":0,"sum_ns":1500000,"buckets":[[-2426,1]]}`, only
//! buckets that are not empty.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Histogram;

#[derive(Serialize, Deserialize)]
struct Sparse {
    schema: i8,
    zero: u64,
    sum_ns: u64,
    buckets: Vec<(i32, u64)>,
}

/// Writes a histogram.
pub fn serialize<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    let buckets = histogram.buckets().collect();
    let (schema, zero, sum_ns) = (histogram.schema(), histogram.zero(), histogram.sum_ns());
    Sparse { schema, zero, sum_ns, buckets }.serialize(serializer)
}

/// Reads a histogram.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
    let Sparse { schema, zero, sum_ns, buckets } = Sparse::deserialize(deserializer)?;
    Histogram::new(schema, zero, sum_ns, buckets).ok_or_else(|| D::Error::custom("a bucket that does not exist"))
}
