//! Damaged pushes. `make fuzz` runs these tests with a million cases, in a few minutes.

use std::sync::LazyLock;

use brewbench_agent::series::collector::{Collector, Scope};
use brewbench_wire::series::Second;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{RECORDINGS, Recorded, Recording};

/// The unpacked messages of the recorded pushes: snappy does not detect changes in them.
static MESSAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    recorded().map(|push| snap::raw::Decoder::new().decompress_vec(&push.body).expect("a block")).collect()
});

fn recorded() -> impl Iterator<Item = Recorded> {
    RECORDINGS.iter().flat_map(Recording::pushes)
}

fn pack(message: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(message).expect("packed")
}

/// Collects pushes, one per second, and checks that the histograms can be evaluated.
fn collect(pushes: impl IntoIterator<Item = Vec<u8>>) {
    let mut collector = Collector::new(0, Scope::All);
    for (push, second) in pushes.into_iter().zip(1..) {
        collector.take(&push, second * 1000);
    }
    for second in &collector.finish().0.seconds {
        let Second { succeeded, failed, .. } = second;
        for histogram in [succeeded, failed] {
            assert_eq!(histogram.quantile(0.99).is_some(), histogram.total() > 0);
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    vec(any::<(prop::sample::Index, u8)>(), 1..8)
}

fn change(bytes: &mut [u8], changes: &[(prop::sample::Index, u8)]) {
    for (at, byte) in changes {
        let length = bytes.len();
        bytes[at.index(length)] = *byte;
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_accepted(bytes in vec(any::<u8>(), 0..400)) {
        collect([pack(&bytes), bytes]);
    }

    #[test]
    fn a_modified_body_is_accepted(first: prop::sample::Index, changes in changes()) {
        let mut pushes: Vec<Vec<u8>> = recorded().map(|push| push.body).collect();
        let first = first.index(pushes.len());
        change(&mut pushes[first], &changes);
        collect(pushes);
    }

    #[test]
    fn a_modified_message_is_accepted(number in any::<prop::sample::Index>(), changes in changes()) {
        let mut message = number.get(&MESSAGES).clone();
        let before = pack(&message);
        change(&mut message, &changes);
        collect([before.clone(), pack(&message), before]);
    }

    #[test]
    fn a_truncated_message_is_accepted(number in any::<prop::sample::Index>(), end in any::<prop::sample::Index>()) {
        let message = number.get(&MESSAGES);
        collect([pack(&message[..end.index(message.len())])]);
    }
}
