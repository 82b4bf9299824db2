//! Runs with fake k6 programs that accept only the flags of a version.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use brewbench_agent::engine::k6::K6;
use brewbench_agent::run::execute;
use brewbench_agent::sandbox::cage::user;
use brewbench_agent::sandbox::{ProgramRole, Sandbox};
use brewbench_testing::public_folder;
use brewbench_wire::RunId;
use brewbench_wire::job::Job;
use brewbench_wire::load::Load;
use brewbench_wire::outcome::{Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, scenario};

/// Flags of k6 2.2.0 (`k6 run --help`, `k6 inspect --help`) with a value, and those without.
const WITH_VALUE: &str = "--vus --duration --iterations --stage --execution-segment --execution-segment-sequence \
    --max-redirects --batch --batch-per-host --rps --user-agent --min-iteration-duration --blacklist-ip \
    --block-hostnames --summary-trend-stats --summary-time-unit --system-tags --tag --console-output --local-ips \
    --dns --compatibility-mode --type --env --summary-mode --summary-export --traces-output --out --features \
    --address --config --log-format --log-output --secret-source";
const WITHOUT_VALUE: &str = "--paused --no-setup --no-teardown --http-debug --insecure-skip-tls-verify \
    --no-connection-reuse --no-vu-connection-reuse --throw --discard-response-bodies --include-system-env-vars \
    --no-thresholds --new-machine-readable-summary --linger --no-usage-report --no-color --profiling-enabled --quiet \
    --verbose --execution-requirements";

/// Flags and values of 1.x that 2.0 removed.
const REMOVED: [&str; 3] = ["--no-summary", "--upload-only", "--summary-mode=legacy"];

/// Writes a program that rejects unknown flags as k6 does, logs its arguments, and writes a summary.
fn fake_k6(folder: &Path, version: &str) -> PathBuf {
    let listed = |flags: &str| flags.split_whitespace().collect::<Vec<_>>().join("|");
    let text = format!(
        r#"#!/bin/sh
[ "$1" = version ] && {{ echo 'k6 v{version} (go1.26.8, linux/amd64)'; exit 0; }}
printf '%s\n' "$@" >> '{folder}/arguments'
env | grep '^K6_' >> '{folder}/environment'
command=$1 summary=
shift
while [ $# -gt 0 ]; do
  case $1 in
    --summary-export) summary=$2; shift ;;
    --summary-mode=legacy) echo 'time="t" level=error msg="invalid summary mode"' >&2; exit 255 ;;
    {with_value}) shift ;;
    {without_value}) ;;
    --*=*) flag=${{1%%=*}}; case $flag in {with_value}|{without_value}) ;; *) echo "time=\"t\" level=error msg=\"unknown flag: $flag\"" >&2; exit 255 ;; esac ;;
    -*) echo "time=\"t\" level=error msg=\"unknown flag: $1\"" >&2; exit 255 ;;
  esac
  shift
done
[ "$command" = inspect ] && printf '%s\n' 'time="t" level=info msg="{exports}"' '{{"totalDuration": "1s"}}'
[ -n "$summary" ] && echo '{{}}' > "$summary"
exit 0
"#,
        folder = folder.display(),
        exports = r#"brewbench-exports {\"scenarios\":[],\"functions\":[\"default\"],\"names\":[]}"#,
        with_value = listed(WITH_VALUE),
        without_value = listed(WITHOUT_VALUE),
    );
    let path = folder.join("k6");
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

/// Runs a job with a fake k6 of this version. Returns the outcome, all arguments, and k6's environment variables.
async fn run_with(version: &str, job: &Job) -> (Outcome, Vec<String>, String) {
    let folder = public_folder();
    user::give(folder.path(), ProgramRole::Generator).expect("given to k6");
    let k6 = K6::find(Some(&fake_k6(folder.path(), version))).await.expect("a supported version");
    let k6 = k6.with_folder(folder.path());
    let agent = format!("test flags {} {}", RunId::now(), std::process::id());
    let bench = Bench::with_k6(Sandbox::none(&agent), agent, k6);
    bench.offer("good", "");
    let outcome = execute::run(job, &bench.work, &CancellationToken::new(), |_| {}).await;
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    (outcome, read("arguments").lines().map(str::to_owned).collect(), read("environment"))
}

#[tokio::test]
async fn every_flag_of_a_run_exists_in_k6_1_and_2() {
    let own_load = Job {
        scenario: scenario(crate::support::SCRIPT),
        spec: RunSpec { load: Some(Load::Script), ..job("good").spec },
        ..job("good")
    };
    for version in ["1.0.0", "2.0.0", "2.2.0"] {
        for job in [job("good"), own_load.clone()] {
            let (outcome, arguments, _) = run_with(version, &Job { run: RunId::now(), ..job }).await;
            assert_eq!(outcome.ended, Ended::Finished, "{version}");
            assert!(
                arguments.iter().filter(|word| *word == "run").count() == 2,
                "warmed up and measured: {arguments:?}"
            );
            for removed in REMOVED {
                assert!(!arguments.iter().any(|word| word == removed), "{removed}: {arguments:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_fake_k6_rejects_flags_removed_in_2_0() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = fake_k6(folder.path(), "2.2.0");
    for removed in REMOVED {
        let ended = std::process::Command::new(&path).args(["run", removed]).output().expect("a program");
        assert_eq!(ended.status.code(), Some(255), "{removed}");
    }
}

#[tokio::test]
async fn native_histograms_are_enabled_as_the_version_requires() {
    for (version, by_flag) in [("1.8.1", false), ("2.0.0", false), ("2.1.0", true), ("2.2.0", true)] {
        let (_, arguments, environment) = run_with(version, &job("good")).await;
        let flags = arguments.windows(2).filter(|pair| *pair == ["--features", "native-histograms"]).count();
        assert_eq!(flags, if by_flag { 2 } else { 0 }, "warm-up and measurement of {version}: {arguments:?}");
        let by_environment = environment.contains("K6_PROMETHEUS_RW_TREND_AS_NATIVE_HISTOGRAM=true");
        assert_eq!(by_environment, !by_flag, "{version}: {environment}");
    }
}
