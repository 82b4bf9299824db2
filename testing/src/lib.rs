//! What the tests of both crates share.

mod small_disk;

pub use small_disk::SmallDisk;

/// While this is set, a test that can't run fails. CI sets it.
const NO_SKIP: &str = "BREWBENCH_NO_SKIP";

/// Prints why a test, or a part of it, can't run on this machine.
///
/// # Panics
/// If `BREWBENCH_NO_SKIP` is set: where everything is installed, a skipped test is a fault.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(std::env::var_os(NO_SKIP).is_none(), "skipped, which {NO_SKIP} forbids: {reason}");
    println!("skipped: {reason}");
}
