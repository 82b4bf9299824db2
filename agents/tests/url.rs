//! Runs on a server that already runs, with a real k6.

use brewbench_agent::run::execute;
use brewbench_wire::Phase;
use brewbench_wire::job::{Job, Role, Size};
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::target::Identity;
use tokio_util::sync::CancellationToken;

use crate::support::web::Web;
use crate::support::{Bench, job, vus};

/// Writes the manifest of a target with this base URL.
fn offer(bench: &Bench, base: &str, tables: &str) {
    let ready = if tables.contains("[ready]") { "" } else { "[ready]\npath = \"/\"\ntimeout_s = 2\n" };
    let text = format!("name = \"remote\"\nversion = \"1\"\n[url]\nbase = \"{base}\"\n{tables}\n{ready}");
    std::fs::write(bench.work.targets.join("remote.toml"), text).expect("a manifest");
}

async fn run(bench: &Bench) -> Outcome {
    let job = Job { spec: RunSpec { warm_up_s: Some(0.0), ..job("remote").spec }, ..job("remote") };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    outcome
}

/// Runs a job that must fail, and returns why.
async fn failure(bench: &Bench) -> String {
    match run(bench).await.ended {
        Ended::Failed { reason, cause: Cause::TargetNotReady } => reason,
        ended => panic!("ended as {ended:?}"),
    }
}

#[tokio::test]
async fn a_server_that_already_runs_is_measured() {
    let Some(bench) = Bench::new("url").await else { return };
    let web = Web::start("127.0.0.1:0").await;
    let base = format!("http://{}", web.at);
    offer(&bench, &base, &format!("[metrics]\nscrape = \"{base}/metrics\""));
    let outcome = run(&bench).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(outcome.target, Some(Identity::Url { base: base.clone() }));
    assert_eq!((outcome.enforced.cpu.as_str(), outcome.enforced.memory.as_str()), ("none", "none"));
    assert!(outcome.observed.is_none() && outcome.cores.target.is_empty(), "{outcome:?}");
    assert_eq!(outcome.environment["target.base_url"], base);
    assert_eq!(outcome.environment["target.addresses"], "127.0.0.1");
    assert_eq!(outcome.environment["target.metrics"], format!("process of the process from {base}/metrics"));
    assert!(!outcome.environment.contains_key("target.command"), "{:?}", outcome.environment);
    let conditions = &outcome.conditions;
    assert!(conditions.round_trip_ms.is_some_and(|ms| ms > 0.0 && ms < 1_000.0), "{conditions:?}");
    assert_eq!((conditions.startup_ms, conditions.response_change.as_deref()), (None, Some("")));
    assert_eq!((conditions.processes, conditions.processes_gone), (Some(1), Some(0)));
    assert_eq!(conditions.idle_memory_bytes, Some(50_000_000));

    // The server counts 10 ms of CPU per request, since long before the run.
    let series = outcome.series.expect("a series").unpack().expect("a series");
    let usage = series.measured.expect("a window").usage;
    let cpu_us: u64 = usage.iter().filter_map(|usage| usage.target.cpu_us).sum();
    assert_eq!(usage[0].target.cpu_us, Some(0), "{usage:?}");
    assert!(cpu_us > 0 && cpu_us <= web.requests() * 10_000, "{cpu_us} µs of {} requests", web.requests());
    assert!(usage.iter().all(|usage| usage.target.memory_bytes == Some(50_000_000)), "{usage:?}");
    assert!(
        usage.iter().all(|usage| usage.target.held_memory_bytes.is_none()),
        "mapped files are part of it: {usage:?}"
    );
}

#[tokio::test]
async fn without_metrics_usage_is_unknown() {
    let Some(bench) = Bench::new("url bare").await else { return };
    let web = Web::start("127.0.0.1:0").await;
    offer(&bench, &format!("http://{}/api/", web.at), "");
    let outcome = run(&bench).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(outcome.environment["target.base_url"], format!("http://{}/api", web.at), "a base path");
    let conditions = &outcome.conditions;
    assert_eq!((conditions.processes, conditions.idle_memory_bytes), (None, None));
    let series = outcome.series.expect("a series").unpack().expect("a series");
    let window = series.measured.expect("a window");
    assert!(!window.usage.is_empty());
    assert!(window.usage.iter().all(|usage| usage.target.cpu_us.is_none() && usage.target.memory_bytes.is_none()));
}

#[tokio::test]
async fn a_server_may_have_an_ipv6_address() {
    let Some(bench) = Bench::new("url six").await else { return };
    let web = Web::start("[::1]:0").await;
    offer(&bench, &format!("http://{}", web.at), "");
    let outcome = run(&bench).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(outcome.environment["target.addresses"], "::1");
}

#[tokio::test]
async fn a_restart_during_the_measurement_is_noticed() {
    let Some(bench) = Bench::new("url restart").await else { return };
    let web = Web::start("127.0.0.1:0").await;
    let base = format!("http://{}", web.at);
    offer(&bench, &base, &format!("[metrics]\nscrape = \"{base}/metrics\""));
    let job = Job {
        spec: RunSpec { warm_up_s: Some(0.0), load: Some(vus(1, 2_000)), ..job("remote").spec },
        ..job("remote")
    };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |phase| {
        if phase == Phase::Measuring {
            web.restart();
        }
    })
    .await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!((outcome.conditions.processes, outcome.conditions.processes_gone), (Some(1), Some(1)));
}

#[tokio::test]
async fn a_redirect_is_followed_only_to_a_host_that_the_manifest_names() {
    let Some(bench) = Bench::new("url moved").await else { return };
    let other = Web::start("127.0.0.1:0").await;
    let place = format!("http://localhost:{}/", other.at.port());
    let web = Web::moved_to(&place).await;
    let ready = "[ready]\npath = \"/moved\"\ntimeout_s = 1";
    for redirects in ["", "redirects = []", "redirects = [\"127.0.0.3\"]"] {
        offer(&bench, &format!("http://{}", web.at), &format!("{redirects}\n{ready}"));
        let reason = failure(&bench).await;
        assert!(reason.contains(&format!("last status 302, which redirects to {place}")), "{reason}");
        assert_eq!(other.requests(), 0, "{redirects}");
    }
    offer(&bench, &format!("http://{}", web.at), &format!("redirects = [\"localhost\"]\n{ready}"));
    let outcome = run(&bench).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!(other.requests() > 0);
    // A metadata service is no host to be named.
    offer(&bench, &format!("http://{}", web.at), &format!("redirects = [\"169.254.169.254\"]\n{ready}"));
    let reason = failure(&bench).await;
    assert!(reason.contains("169.254.169.254 is a cloud metadata service"), "{reason}");
}

#[tokio::test]
async fn other_agents_may_not_load_it() {
    let Some(bench) = Bench::new("url host").await else { return };
    let web = Web::start("127.0.0.1:0").await;
    offer(&bench, &format!("http://{}", web.at), "");
    let job = Job { role: Role::Host, ..job("remote") };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    let Ended::Failed { reason, .. } = outcome.ended else { panic!("{outcome:?}") };
    assert_eq!(reason, "target remote already runs, so only this agent may load it");
    assert_eq!(web.requests(), 0);
}

#[tokio::test]
async fn a_server_that_can_not_be_used_is_a_failure_with_its_reason() {
    let Some(bench) = Bench::new("url bad").await else { return };
    let (web, tls) = (Web::start("127.0.0.1:0").await, Web::untrusted().await);
    let base = format!("http://{}", web.at);
    let cases = [
        (format!("https://localhost:{}", tls.at.port()), String::new(), "UnknownIssuer"),
        ("http://169.254.169.254".to_owned(), String::new(), "169.254.169.254 is a cloud metadata service"),
        ("http://127.0.0.1:1".to_owned(), String::new(), "the connection failed: Connection refused"),
        (base.clone(), "[verify]\npath = \"/\"\ncontains = \"bye\"".to_owned(), "does not contain \"bye\""),
        (base.clone(), format!("[metrics]\nscrape = \"{base}/nothing\""), "metrics: GET"),
        (base.clone(), format!("[metrics]\nscrape = \"{base}/\""), "has none of these metrics"),
        (
            base.clone(),
            format!("[metrics]\nscrape = \"{base}/metrics\"\npreset = \"cadvisor\""),
            "container_cpu_usage_seconds_total (cadvisor)",
        ),
    ];
    for (base, tables, words) in cases {
        offer(&bench, &base, &tables);
        let reason = failure(&bench).await;
        assert!(reason.starts_with("target remote: ") && reason.contains(words), "{base}: {reason}");
    }
}

#[tokio::test]
async fn a_larger_size_than_the_machine_is_no_obstacle() {
    let Some(bench) = Bench::new("url size").await else { return };
    let web = Web::start("127.0.0.1:0").await;
    offer(&bench, &format!("http://{}", web.at), "");
    let mut job = Job {
        spec: RunSpec { warm_up_s: Some(0.0), load: Some(vus(1, 1_000)), ..job("remote").spec },
        ..job("remote")
    };
    job.spec.size = job.spec.size.map(|size| Size { vcpus: 4_096.0, memory_bytes: 1 << 50, ..size });
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
}
