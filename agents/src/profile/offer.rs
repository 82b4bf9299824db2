//! Whether this agent can profile a target: what its owner allows, and what is installed. Cheap, as it is asked each
//! time that manifests are read.

use brewbench_wire::manifest::{Profile, Profiler};
use brewbench_wire::profile::{ProfileOffer, ProfileSource};

use super::{command, perf};

/// Why there is no profile of a target without `[profile]` that runs outside the agent's machine.
const NO_ENDPOINT: &str =
    "the agent can't attach to a target outside its machine: name its endpoint in [profile] pprof";

/// Returns whether a target can be profiled, with what its owner allows.
pub fn offer(profile: Option<&Profile>, allowed: &[ProfileSource]) -> ProfileOffer {
    match check(profile, allowed) {
        Ok(profile) => ProfileOffer::Ready { source: profile.source() },
        Err(reason) => ProfileOffer::Impossible { reason },
    }
}

/// Returns how a target is profiled. The error is a sentence with a remedy.
pub fn check<'a>(profile: Option<&'a Profile>, allowed: &[ProfileSource]) -> Result<&'a Profile, String> {
    let profile = profile.ok_or(NO_ENDPOINT)?;
    let source = profile.source();
    if !allowed.contains(&source) {
        return Err(format!("the agent's owner does not allow {source}: start the agent with --profilers {source}"));
    }
    match &profile.by {
        Profiler::Pprof(_) => Ok(profile),
        Profiler::Perf { .. } => usable_perf().map(|_| profile),
        Profiler::Command { command, folder, .. } => command::program(command, folder).map(|_| profile),
    }
}

/// Checks that perf can be used. The error is a sentence with a remedy.
pub fn usable_perf() -> Result<perf::Access, String> {
    perf::find()?;
    perf::access()
}

#[cfg(test)]
mod tests {
    use brewbench_wire::manifest::CallGraph;
    use brewbench_wire::profile::ProfileKind;

    use super::*;

    fn profile(by: Profiler) -> Profile {
        Profile { by, kinds: vec![ProfileKind::Cpu] }
    }

    fn reason(profile: Option<&Profile>, allowed: &[ProfileSource]) -> String {
        match offer(profile, allowed) {
            ProfileOffer::Impossible { reason } => reason,
            ready @ ProfileOffer::Ready { .. } => panic!("{ready:?}"),
        }
    }

    #[test]
    fn what_the_owner_does_not_allow_is_impossible() {
        let pprof = profile(Profiler::Pprof("/p?s={s}".to_owned()));
        let perf = profile(Profiler::Perf { call_graph: CallGraph::Fp, rate_hz: 999 });
        let words = "the agent's owner does not allow pprof: start the agent with --profilers pprof";
        assert_eq!(reason(Some(&pprof), &[ProfileSource::Perf]), words);
        assert!(reason(Some(&perf), &[ProfileSource::Pprof]).contains("--profilers perf"));
        let ready = ProfileOffer::Ready { source: ProfileSource::Pprof };
        assert_eq!(offer(Some(&pprof), &ProfileSource::ALL), ready);
        assert!(reason(None, &ProfileSource::ALL).contains("[profile] pprof"));
    }

    #[test]
    fn a_command_that_is_missing_is_impossible() {
        let command = |program: &str| {
            let command = vec![program.to_owned(), "{pid}".to_owned()];
            profile(Profiler::Command { command, folder: "/".into(), rate_hz: 100 })
        };
        let words = "profile.command: program no-such-profiler not found";
        assert_eq!(reason(Some(&command("no-such-profiler")), &ProfileSource::ALL), words);
        let ready = ProfileOffer::Ready { source: ProfileSource::Command };
        assert_eq!(offer(Some(&command("sh")), &ProfileSource::ALL), ready);
    }
}
