//! Unpacks k6's pushes: a snappy block with a protobuf message. The sender runs arbitrary scripts, so everything is
//! limited.

use std::ops::Range;

use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};

use crate::series::messages::TimeSeries;

/// A push of ten thousand series is about a megabyte; k6 compresses it to a third at best.
pub const MAX_BODY: usize = 4 << 20;

const MAX_MESSAGE: usize = 16 << 20;
const MAX_SERIES: usize = 50_000;

/// k6 does not limit its tags, but a series of this size is not a metric.
const MAX_SERIES_BYTES: usize = 64 << 10;
const MAX_LABELS: usize = 128;

/// The field `timeseries` of the message `WriteRequest`.
const TIME_SERIES_FIELD: u32 = 1;

/// Why a push is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A limit is exceeded.
    #[error("too large")]
    TooLarge,
    /// Not a complete snappy block.
    #[error("not a snappy block")]
    NotSnappy,
    /// Not the expected message.
    #[error("not a remote-write message")]
    NotProtobuf,
}

/// A push, split into its series.
#[derive(Debug)]
pub struct Push {
    message: Vec<u8>,
    series: Vec<Range<usize>>,
}

impl Push {
    /// Unpacks the body of a push, with limited memory.
    pub fn unpack(body: &[u8]) -> Result<Self, Fault> {
        let length = snap::raw::decompress_len(body).map_err(|_| Fault::NotSnappy)?;
        if body.len() > MAX_BODY || length > MAX_MESSAGE {
            return Err(Fault::TooLarge);
        }
        let message = snap::raw::Decoder::new().decompress_vec(body).map_err(|_| Fault::NotSnappy)?;
        let series = split(&message)?;
        Ok(Self { message, series })
    }

    /// Returns the series, each decoded lazily, so that only one is in memory at a time.
    pub fn series(&self) -> impl Iterator<Item = Result<TimeSeries, Fault>> {
        self.series.iter().map(|range| {
            let series = TimeSeries::decode(&self.message[range.clone()]).map_err(|_| Fault::NotProtobuf)?;
            if series.labels.len() > MAX_LABELS { Err(Fault::TooLarge) } else { Ok(series) }
        })
    }
}

/// Returns the ranges of the series within a message.
fn split(message: &[u8]) -> Result<Vec<Range<usize>>, Fault> {
    let mut rest = message;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (field, wire) = decode_key(&mut rest).map_err(|_| Fault::NotProtobuf)?;
        if field != TIME_SERIES_FIELD {
            skip_field(wire, field, &mut rest, DecodeContext::default()).map_err(|_| Fault::NotProtobuf)?;
            continue;
        }
        if wire != WireType::LengthDelimited {
            return Err(Fault::NotProtobuf);
        }
        let length = prost::decode_length_delimiter(&mut rest).map_err(|_| Fault::NotProtobuf)?;
        if length > rest.len() {
            return Err(Fault::NotProtobuf);
        }
        if length > MAX_SERIES_BYTES || found.len() == MAX_SERIES {
            return Err(Fault::TooLarge);
        }
        let start = message.len() - rest.len();
        found.push(start..start + length);
        rest = &rest[length..];
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::series::messages::Label;

    fn pack(message: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(message).expect("packed")
    }

    /// Encodes a message with these series.
    fn message(series: &[TimeSeries]) -> Vec<u8> {
        series.iter().flat_map(|series| [vec![0x0a], series.encode_length_delimited_to_vec()].concat()).collect()
    }

    fn series_named(name: &str) -> TimeSeries {
        let label = Label { name: "__name__".to_owned(), value: name.to_owned() };
        TimeSeries { labels: vec![label], ..TimeSeries::default() }
    }

    #[test]
    fn series_survive_a_round_trip_and_other_fields_are_skipped() {
        let (first, second) = (series_named("a"), series_named("b"));
        let metadata = [0x1a, 0x02, 0x08, 0x01];
        let bytes = [message(std::slice::from_ref(&first)), metadata.to_vec(), message(std::slice::from_ref(&second))];
        let push = Push::unpack(&pack(&bytes.concat())).expect("unpacked");
        assert_eq!(push.series().collect::<Result<Vec<_>, _>>(), Ok(vec![first, second]));
    }

    #[test]
    fn a_truncated_push_is_rejected() {
        let complete = pack(&message(&[series_named("a"), series_named("b")]));
        assert!((0..complete.len()).all(|end| Push::unpack(&complete[..end]).is_err()));
        let inner = message(&[series_named("a")]);
        assert_eq!(Push::unpack(&pack(&inner[..inner.len() - 1])).err(), Some(Fault::NotProtobuf));
    }

    #[test]
    fn an_oversized_push_is_rejected_before_it_is_unpacked() {
        assert_eq!(Push::unpack(&pack(&vec![0; MAX_MESSAGE + 1])).err(), Some(Fault::TooLarge));
        let claims_four_gigabytes = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
        assert_eq!(Push::unpack(&claims_four_gigabytes).err(), Some(Fault::TooLarge));
    }

    #[test]
    fn series_per_push_and_labels_per_series_are_limited() {
        let empty = [0x0a, 0x00].repeat(MAX_SERIES + 1);
        assert_eq!(Push::unpack(&pack(&empty)).err(), Some(Fault::TooLarge));
        let many = TimeSeries { labels: vec![Label::default(); MAX_LABELS + 1], ..TimeSeries::default() };
        let push = Push::unpack(&pack(&message(&[many]))).expect("unpacked");
        assert_eq!(push.series().next(), Some(Err(Fault::TooLarge)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for body in [pack(&bytes), bytes] {
                if let Ok(push) = Push::unpack(&body) {
                    push.series().for_each(drop);
                }
            }
        }
    }
}
