//! Assigns CPUs to the two sides of a run.

use std::fs;

use brewbench_wire::outcome::{Cores, Placement};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::topology::{self, PhysicalCores};

/// Returns the CPU numbers that the calling thread may use, ascending.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

/// Returns the physical cores that the calling thread may use, in the order of assignment: see
/// `topology::physical_cores`.
pub fn physical() -> PhysicalCores {
    topology::physical_cores(&allowed(), |processor| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")).ok()
    })
}

/// What else runs on the machine of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharesWith {
    /// k6, which needs its own core.
    Generator,
    /// Nothing.
    None,
}

/// Assigns CPUs. Each vCPU of the target, rounded up, gets one CPU of its own physical core; the generator gets all
/// other cores, so that they share none. With too few cores the target's vCPUs are hyperthreads of as few cores as
/// possible; then the generator gets hyperthreads of the target's cores; and if nothing is left, it uses all CPUs,
/// including the target's.
pub fn assign(physical: &[Vec<usize>], vcpus: f64, neighbour: SharesWith) -> (Cores, Placement) {
    let processors: usize = physical.iter().map(Vec::len).sum();
    let wanted = round_up(vcpus).clamp(1, processors.max(1));
    let reserved = usize::from(neighbour == SharesWith::Generator);
    if wanted + reserved <= physical.len() {
        let (own, rest) = physical.split_at(wanted);
        let target = own.iter().filter_map(|core| core.first()).copied().collect();
        return assigned(target, rest.concat(), neighbour, Placement::WholeCores);
    }
    let touched = cores_for(physical, wanted);
    let target: Vec<usize> = physical.concat().into_iter().take(wanted).collect();
    let (rest, placement) = if touched + reserved <= physical.len() {
        (physical[touched..].concat(), Placement::SiblingThreads)
    } else if wanted < processors {
        (physical.concat().split_off(wanted), Placement::SharedPhysicalCore)
    } else {
        (physical.concat(), Placement::SharedCores)
    };
    assigned(target, rest, neighbour, placement)
}

fn assigned(
    mut target: Vec<usize>,
    rest: Vec<usize>,
    neighbour: SharesWith,
    placement: Placement,
) -> (Cores, Placement) {
    let mut generator = if neighbour == SharesWith::Generator { rest } else { Vec::new() };
    target.sort_unstable();
    generator.sort_unstable();
    (Cores { target, generator }, placement)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates, as intended")]
fn round_up(vcpus: f64) -> usize {
    vcpus.ceil() as usize
}

/// Returns how many cores are needed for a number of CPUs.
fn cores_for(physical: &[Vec<usize>], wanted: usize) -> usize {
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

    /// Physical cores, vCPUs, the target's CPUs, the generator's CPUs, and the placement.
    type Row<'a> = (&'a [&'a [usize]], f64, &'a [usize], &'a [usize], Placement);

    #[track_caller]
    fn check(table: &[Row], neighbour: SharesWith) {
        for (physical, vcpus, target, generator, placement) in table {
            let physical: PhysicalCores = physical.iter().map(|core| core.to_vec()).collect();
            let expected = Cores { target: target.to_vec(), generator: generator.to_vec() };
            assert_eq!(assign(&physical, *vcpus, neighbour), (expected, *placement), "{vcpus} of {physical:?}");
        }
    }

    #[test]
    fn cores_are_assigned_by_the_table() {
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
            // Two cores with two hyperthreads each: the sibling of a target's CPU stays unused.
            (&[&[1, 3], &[0, 2]], 1.0, &[1], &[0, 2], WholeCores),
            (&[&[1, 3], &[0, 2]], 2.0, &[1, 3], &[0, 2], SiblingThreads),
            (&[&[1, 3], &[0, 2]], 3.0, &[0, 1, 3], &[2], SharedPhysicalCore),
            (&[&[1, 3], &[0, 2]], 4.0, &[0, 1, 2, 3], &[0, 1, 2, 3], SharedCores),
            // One core with two.
            (&[&[0, 1]], 1.0, &[0], &[1], SharedPhysicalCore),
            // Two fast cores with two hyperthreads each and two slow ones with one.
            (&[&[2, 3], &[4], &[5], &[0, 1]], 3.0, &[2, 4, 5], &[0, 1], WholeCores),
        ];
        check(&table, SharesWith::Generator);
    }

    #[test]
    fn a_target_alone_on_its_machine_uses_all_cores() {
        use Placement::{SiblingThreads, WholeCores};
        let table: [Row; 4] = [
            (&[&[1], &[0]], 2.0, &[0, 1], &[], WholeCores),
            (&[&[1, 3], &[0, 2]], 2.0, &[0, 1], &[], WholeCores),
            (&[&[1, 3], &[0, 2]], 3.0, &[0, 1, 3], &[], SiblingThreads),
            (&[&[1, 3], &[0, 2]], 4.0, &[0, 1, 2, 3], &[], SiblingThreads),
        ];
        check(&table, SharesWith::None);
    }

    #[test]
    fn the_placement_reports_every_shared_core() {
        for cores in 1..6_usize {
            for threads in 1..4_usize {
                let physical: PhysicalCores =
                    (0..cores).map(|core| (0..threads).map(|thread| core + thread * cores).collect()).collect();
                for vcpus in 1..=cores * threads {
                    let (assigned, placement) = assign(&physical, vcpus as f64, SharesWith::Generator);
                    let on = |list: &[usize]| {
                        physical.iter().filter(|core| core.iter().any(|cpu| list.contains(cpu))).count()
                    };
                    let apart = on(&assigned.target) + on(&assigned.generator) <= cores;
                    let separate = matches!(placement, Placement::WholeCores | Placement::SiblingThreads);
                    assert_eq!(apart, separate, "{vcpus} of {cores} cores with {threads}: {assigned:?} {placement:?}");
                    assert_eq!(assigned.target.len(), vcpus);
                    assert!(!assigned.generator.is_empty());
                }
            }
        }
    }

    #[test]
    fn this_process_may_use_at_least_one_core() {
        assert!(!allowed().is_empty());
    }
}
