//! Pushes recorded from k6 1.8.1 and 2.2.0, and how they are processed.
//!
//! `fixtures/series/k6-…/pushes.bin` are the pushes of a run of 4.5 s with 300 iterations per second, with requests
//! that succeed (`kind:a`) and requests that fail with 404. For each push: the time in unix milliseconds (8 bytes), the
//! length (4 bytes, both little endian) and the body. `summary.json` is k6's summary of the same run. In 2.2.0 every
//! series has the label `k6_feature_native_histograms`.

mod hostile;
mod real;
mod recorded;

/// A push and when it was received.
struct Recorded {
    at_ms: i64,
    body: Vec<u8>,
}

/// The recorded run of one version of k6.
struct Recording {
    version: &'static str,
    pushes: &'static [u8],
    summary: &'static str,
}

const RECORDINGS: [Recording; 2] = [
    Recording {
        version: "1.8.1",
        pushes: include_bytes!("../fixtures/series/k6-1.8.1/pushes.bin"),
        summary: include_str!("../fixtures/series/k6-1.8.1/summary.json"),
    },
    Recording {
        version: "2.2.0",
        pushes: include_bytes!("../fixtures/series/k6-2.2.0/pushes.bin"),
        summary: include_str!("../fixtures/series/k6-2.2.0/summary.json"),
    },
];

impl Recording {
    fn pushes(&self) -> Vec<Recorded> {
        let mut rest = self.pushes;
        let mut pushes = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<12>() {
            let (at, length) = head.split_first_chunk::<8>().expect("a time");
            let length = u32::from_le_bytes(length.try_into().expect("a length"));
            let (body, after) = after.split_at(usize::try_from(length).expect("a length"));
            pushes.push(Recorded { at_ms: i64::from_le_bytes(*at), body: body.to_vec() });
            rest = after;
        }
        pushes
    }
}
