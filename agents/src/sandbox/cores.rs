//! Which processors each side of a run gets.

use std::fs;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::topology::{self, PhysicalCores};
use crate::wire::outcome::{Cores, Placement};

/// The processor numbers that the calling thread may use, ascending.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

/// The physical cores that the calling thread may use, in the order of dealing: see `topology::physical_cores`.
pub fn physical() -> PhysicalCores {
    topology::physical_cores(&allowed(), |processor| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")).ok()
    })
}

/// Who else is on the machine of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// k6, which needs a core of its own.
    Generator,
    /// Nobody.
    Nobody,
}

/// Deals processors out. The target gets one of a physical core of its own for each vCPU that its size touches, the
/// generator all of the other cores: so neither shares a core with the other. Where there are too few for that, the
/// target's vCPUs are hyperthreads of as few cores as possible; then the generator gets hyperthreads of the target's
/// cores; and where nothing is left it may use all of them and shares the target's.
pub fn deal(physical: &[Vec<usize>], vcpus: f64, beside: Beside) -> (Cores, Placement) {
    let processors: usize = physical.iter().map(Vec::len).sum();
    let wanted = whole(vcpus).clamp(1, processors.max(1));
    let kept = usize::from(beside == Beside::Generator);
    if wanted + kept <= physical.len() {
        let (own, rest) = physical.split_at(wanted);
        let target = own.iter().filter_map(|core| core.first()).copied().collect();
        return dealt(target, rest.concat(), beside, Placement::WholeCores);
    }
    let touched = cores_of(physical, wanted);
    let target: Vec<usize> = physical.concat().into_iter().take(wanted).collect();
    let (rest, placement) = if touched + kept <= physical.len() {
        (physical[touched..].concat(), Placement::SiblingThreads)
    } else if wanted < processors {
        (physical.concat().split_off(wanted), Placement::SharedPhysicalCore)
    } else {
        (physical.concat(), Placement::SharedCores)
    };
    dealt(target, rest, beside, placement)
}

fn dealt(mut target: Vec<usize>, rest: Vec<usize>, beside: Beside, placement: Placement) -> (Cores, Placement) {
    let mut generator = if beside == Beside::Generator { rest } else { Vec::new() };
    target.sort_unstable();
    generator.sort_unstable();
    (Cores { target, generator }, placement)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates, which is meant")]
fn whole(vcpus: f64) -> usize {
    vcpus.ceil() as usize
}

/// How many cores it takes for so many processors.
fn cores_of(physical: &[Vec<usize>], wanted: usize) -> usize {
    let mut sum = 0;
    physical
        .iter()
        .take_while(|core| {
            let is_short = sum < wanted;
            sum += core.len();
            is_short
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Physical cores, vCPUs; the target's processors, the generator's, and how.
    type Row<'a> = (&'a [&'a [usize]], f64, &'a [usize], &'a [usize], Placement);

    #[track_caller]
    fn check(table: &[Row], beside: Beside) {
        for (physical, vcpus, target, generator, placement) in table {
            let physical: PhysicalCores = physical.iter().map(|core| core.to_vec()).collect();
            let expected = Cores { target: target.to_vec(), generator: generator.to_vec() };
            assert_eq!(deal(&physical, *vcpus, beside), (expected, *placement), "{vcpus} of {physical:?}");
        }
    }

    #[test]
    fn cores_are_dealt_by_the_table() {
        use Placement::{SharedCores, SharedPhysicalCore, SiblingThreads, WholeCores};
        let table: [Row; 15] = [
            (&[&[1], &[0]], 1.0, &[1], &[0], WholeCores),
            (&[&[1], &[0]], 0.5, &[1], &[0], WholeCores),
            (&[&[1], &[0]], 2.0, &[0, 1], &[0, 1], SharedCores),
            (&[&[1], &[2], &[3], &[0]], 1.5, &[1, 2], &[0, 3], WholeCores),
            (&[&[1], &[2], &[3], &[0]], 3.0, &[1, 2, 3], &[0], WholeCores),
            (&[&[2], &[5], &[7]], 2.0, &[2, 5], &[7], WholeCores),
            (&[&[3]], 1.0, &[3], &[3], SharedCores),
            (&[&[1], &[0]], 16.0, &[0, 1], &[0, 1], SharedCores),
            (&[], 1.0, &[], &[], SharedCores),
            // Two cores with two hyperthreads each: the sibling of a target's processor is nobody's.
            (&[&[1, 3], &[0, 2]], 1.0, &[1], &[0, 2], WholeCores),
            (&[&[1, 3], &[0, 2]], 2.0, &[1, 3], &[0, 2], SiblingThreads),
            (&[&[1, 3], &[0, 2]], 3.0, &[0, 1, 3], &[2], SharedPhysicalCore),
            (&[&[1, 3], &[0, 2]], 4.0, &[0, 1, 2, 3], &[0, 1, 2, 3], SharedCores),
            // One core with two.
            (&[&[0, 1]], 1.0, &[0], &[1], SharedPhysicalCore),
            // Two fast cores with two hyperthreads each and two slow ones with one.
            (&[&[2, 3], &[4], &[5], &[0, 1]], 3.0, &[2, 4, 5], &[0, 1], WholeCores),
        ];
        check(&table, Beside::Generator);
    }

    #[test]
    fn a_target_that_is_alone_on_its_machine_gets_all_of_its_cores() {
        use Placement::{SiblingThreads, WholeCores};
        let table: [Row; 4] = [
            (&[&[1], &[0]], 2.0, &[0, 1], &[], WholeCores),
            (&[&[1, 3], &[0, 2]], 2.0, &[0, 1], &[], WholeCores),
            (&[&[1, 3], &[0, 2]], 3.0, &[0, 1, 3], &[], SiblingThreads),
            (&[&[1, 3], &[0, 2]], 4.0, &[0, 1, 2, 3], &[], SiblingThreads),
        ];
        check(&table, Beside::Nobody);
    }

    #[test]
    fn nobody_shares_a_core_unless_it_is_said() {
        for cores in 1..6_usize {
            for threads in 1..4_usize {
                let physical: PhysicalCores =
                    (0..cores).map(|core| (0..threads).map(|thread| core + thread * cores).collect()).collect();
                for vcpus in 1..=cores * threads {
                    let (dealt, placement) = deal(&physical, vcpus as f64, Beside::Generator);
                    let on = |list: &[usize]| {
                        physical.iter().filter(|core| core.iter().any(|cpu| list.contains(cpu))).count()
                    };
                    let apart = on(&dealt.target) + on(&dealt.generator) <= cores;
                    let separate = matches!(placement, Placement::WholeCores | Placement::SiblingThreads);
                    assert_eq!(apart, separate, "{vcpus} of {cores} cores with {threads}: {dealt:?} {placement:?}");
                    assert_eq!(dealt.target.len(), vcpus);
                    assert!(!dealt.generator.is_empty());
                }
            }
        }
    }

    #[test]
    fn this_process_may_use_at_least_one_core() {
        assert!(!allowed().is_empty());
    }
}
