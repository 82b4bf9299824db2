//! What k6 1.8.1 really pushes, and what becomes of it.
//!
//! `fixtures/series/pushes.bin` are the pushes of a run of 4.5 s with 300 iterations a second, requests that succeed
//! (`kind:a`) and requests that fail with 404, as they came: for each the time in unix milliseconds (8 bytes), the
//! length (4 bytes, both little endian) and the body. `summary.json` is k6's own summary of the same run.

mod hostile;
mod real;
mod recorded;
#[path = "../support/mod.rs"]
mod support;

/// A push and when it came.
struct Recorded {
    at_ms: i64,
    body: Vec<u8>,
}

/// The recorded pushes.
fn recorded() -> Vec<Recorded> {
    let mut rest: &[u8] = include_bytes!("../fixtures/series/pushes.bin");
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
