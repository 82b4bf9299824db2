//! Damaged pushes. Four tests, so `make fuzz` tries a million of them, in a few minutes.

use std::sync::LazyLock;

use brewbench_agent::series::collector::Collector;
use brewbench_agent::wire::series::Second;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{RECORDINGS, Recorded, Recording};

/// The recorded pushes, unpacked: what is changed in there is not caught by snappy.
static MESSAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    recorded().map(|push| snap::raw::Decoder::new().decompress_vec(&push.body).expect("a block")).collect()
});

fn recorded() -> impl Iterator<Item = Recorded> {
    RECORDINGS.iter().flat_map(Recording::pushes)
}

fn pack(message: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(message).expect("packed")
}

/// Takes pushes, a second apart; the figures of all of them must be there to be asked for.
fn take(pushes: impl IntoIterator<Item = Vec<u8>>) {
    let mut collector = Collector::new(0);
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
    fn any_bytes_are_borne(bytes in vec(any::<u8>(), 0..400)) {
        take([pack(&bytes), bytes]);
    }

    #[test]
    fn a_changed_body_is_borne(first: prop::sample::Index, changes in changes()) {
        let mut pushes: Vec<Vec<u8>> = recorded().map(|push| push.body).collect();
        let first = first.index(pushes.len());
        change(&mut pushes[first], &changes);
        take(pushes);
    }

    #[test]
    fn a_changed_message_is_borne(number in any::<prop::sample::Index>(), changes in changes()) {
        let mut message = number.get(&MESSAGES).clone();
        let before = pack(&message);
        change(&mut message, &changes);
        take([before.clone(), pack(&message), before]);
    }

    #[test]
    fn a_message_that_is_cut_off_is_borne(number in any::<prop::sample::Index>(), end in any::<prop::sample::Index>()) {
        let message = number.get(&MESSAGES);
        take([pack(&message[..end.index(message.len())])]);
    }
}
