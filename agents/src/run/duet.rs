//! Executes the two runs of a duet: both targets run at the same time, and are loaded in turns.

use std::sync::Arc;

use brewbench_wire::job::Job;
use brewbench_wire::outcome::{Cause, CoreUse, Ended, Outcome};
use brewbench_wire::{Phase, RunId};
use tokio_util::sync::CancellationToken;

use super::barrier::Barrier;
use super::context::RunContext;
use super::execute::{pin, run_with};
use super::failure::Failure;
use crate::series::live::Live;

/// Executes a job and that of its partner; see [`super::execute::run`]. If one of them fails, so does the other.
pub async fn run(
    jobs: [&Job; 2],
    context: &RunContext,
    cancel: &CancellationToken,
    on_phase: impl Fn(RunId, Phase),
) -> [Outcome; 2] {
    let _pinned = pin(context);
    let (pair, stop, on_phase) = (Arc::new(tokio::sync::Barrier::new(2)), cancel.child_token(), &on_phase);
    let one = async |job: &Job, live: &Live| {
        let barrier = Barrier::Pair(Arc::clone(&pair));
        let outcome = run_with(job, context, barrier, live, &stop, |phase| on_phase(job.run, phase)).await;
        if outcome.ended != Ended::Finished {
            stop.cancel();
        }
        outcome
    };
    let live = context.live.of_partner();
    let (first, second) = tokio::join!(Box::pin(one(jobs[0], &context.live)), Box::pin(one(jobs[1], &live)));
    let mut both = [first, second];
    let uses = both.each_ref().map(|outcome| outcome.conditions.core_use);
    for place in [0, 1] {
        let partner = 1 - place;
        without(&mut both[place].conditions.core_use, uses[partner].as_ref());
        if both[place].ended == Ended::Cancelled && !cancel.is_cancelled() {
            let target = &jobs[partner].spec.target;
            both[place].ended = match &both[partner].ended {
                Ended::Failed { reason, .. } => {
                    Failure::by(Cause::Other)(format!("the other target of the duet, {target}, failed: {reason}"))
                        .into()
                }
                Ended::Finished | Ended::Cancelled => Ended::Cancelled,
            };
        }
    }
    both
}

/// Takes the CPU time of the partner from that of other programs: both use the same cores.
fn without(own: &mut Option<CoreUse>, partner: Option<&CoreUse>) {
    let (Some(own), Some(partner)) = (own, partner) else { return };
    own.busy_us = own.busy_us.saturating_sub(partner.target_us.saturating_add(partner.generator_us));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partner_is_no_other_program() {
        let used = |busy_us, target_us| CoreUse {
            cores: 2,
            elapsed_us: 1_000,
            busy_us,
            target_us,
            generator_us: 10,
            target_waited_us: None,
            generator_waited_us: None,
        };
        let mut own = Some(used(900, 300));
        without(&mut own, Some(&used(900, 400)));
        assert_eq!(own, Some(used(490, 300)));
        without(&mut own, None);
        assert_eq!(own, Some(used(490, 300)), "unknown");
    }
}
