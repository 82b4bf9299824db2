//! Which processors each side of a run gets.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::wire::outcome::Cores;

/// The processor numbers that the calling thread may use, ascending.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

/// Deals processors out: the target gets as many whole ones as its size touches, the generator the rest. When there is
/// no rest, the generator may use all of them and shares the target's: the two lists overlap.
///
/// The target gets the lowest numbers: on processors with two kinds of cores those are the fast ones.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates, which is meant")]
pub fn deal(allowed: &[usize], vcpus: f64) -> Cores {
    let wanted = (vcpus.ceil() as usize).clamp(1, allowed.len().max(1));
    let (target, rest) = allowed.split_at(wanted.min(allowed.len()));
    let generator = if rest.is_empty() { allowed } else { rest };
    Cores { target: target.to_vec(), generator: generator.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_dealt_by_the_table() {
        type Row<'a> = (&'a [usize], f64, &'a [usize], &'a [usize]);
        let table: [Row; 9] = [
            (&[0, 1], 1.0, &[0], &[1]),
            (&[0, 1], 0.5, &[0], &[1]),
            (&[0, 1], 2.0, &[0, 1], &[0, 1]),
            (&[0, 1, 2, 3], 1.5, &[0, 1], &[2, 3]),
            (&[0, 1, 2, 3], 3.0, &[0, 1, 2], &[3]),
            (&[2, 5, 7], 2.0, &[2, 5], &[7]),
            (&[3], 1.0, &[3], &[3]),
            (&[0, 1], 16.0, &[0, 1], &[0, 1]),
            (&[], 1.0, &[], &[]),
        ];
        for (allowed, vcpus, target, generator) in table {
            let expected = Cores { target: target.to_vec(), generator: generator.to_vec() };
            assert_eq!(deal(allowed, vcpus), expected, "{vcpus} of {allowed:?}");
        }
    }

    #[test]
    fn this_process_may_use_at_least_one_core() {
        assert!(!allowed().is_empty());
    }
}
