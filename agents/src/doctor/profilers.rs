//! Which profilers may attach to targets, and whether they can.

use super::Finding;
use crate::connection::daemon::Options;
use crate::profile::{offer, perf};
use crate::wire::profile::ProfileSource;

const CHECK: &str = "profilers";

/// Checks each profiler that the agent's owner allows. None is needed for a run, so at most their absence is a problem.
pub(super) fn profilers(options: &Options) -> Vec<Finding> {
    if options.profilers.is_empty() {
        return vec![Finding::good(CHECK, "none may attach to targets; --profilers pprof,perf allows it")];
    }
    let finding = |source: &ProfileSource| match source {
        ProfileSource::Pprof => Finding::good(CHECK, "pprof: endpoints of targets may be read"),
        ProfileSource::Command => Finding::good(CHECK, "command: commands of manifests may attach"),
        ProfileSource::Perf => perf_finding(),
    };
    options.profilers.iter().map(finding).collect()
}

fn perf_finding() -> Finding {
    match offer::usable_perf() {
        Ok(access) => {
            let path = perf::find().unwrap_or_default();
            let kernel = if access.kernel { "with" } else { "without" };
            Finding::good(CHECK, format!("perf: {}, {kernel} functions of the kernel", path.display()))
        }
        Err(fault) => match fault.split_once(": ") {
            Some((observed, remedy)) => Finding::doubtful(CHECK, format!("perf: {observed}"), remedy),
            None => Finding::doubtful(CHECK, format!("perf: {fault}"), "remove perf from --profilers"),
        },
    }
}
