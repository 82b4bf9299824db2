//! Real runs of Pods: k6 loads them, their node reports their figures, and whatever happens, nothing of them is left.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use brewbench_agent::{
    engine::k6::K6,
    host::idle_wait::IdleWait,
    run::execute::{self, RunContext},
    sandbox::Sandbox,
    target::{Cluster as Used, kubernetes::Patience},
    wire::{
        Phase, RunId,
        job::{Job, Role, Scenario, ScenarioKind, Size},
        load::{Closed, Form, Load},
        outcome::{Cause, Ended, Mechanism, Outcome},
        target::TargetKind,
    },
};
use brewbench_kubernetes_testing::{Cluster, Image, Kubelet, NodeOptions};
use brewbench_testing::skip;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, ResourceQuota, Service},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const SCRIPT: &str = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/hash'); }";

/// An agent's part of a run, in a cluster with one node.
struct Bench {
    cluster: Cluster,
    node: Kubelet,
    work: RunContext,
    folder: tempfile::TempDir,
}

impl Bench {
    /// `None`, with a printed reason, without a control plane, k6 or the bundled server.
    async fn start() -> Option<Self> {
        let cluster = Cluster::start().await?;
        let node = Kubelet::start(&cluster, node(&server()?)).await;
        let k6 = K6::find(None).await.map_err(|fault| skip(&fault.to_string())).ok()?;
        let folder = tempfile::tempdir().expect("a folder");
        let [targets, work] = ["targets", "work"].map(|name| folder.path().join(name));
        for folder in [&targets, &work] {
            fs::create_dir(folder).expect("a folder");
        }
        let work = RunContext::new(Sandbox::none("test pods"), k6, targets, work);
        let idle_wait = IdleWait { longest: Duration::ZERO, ..work.idle_wait };
        let work = RunContext { idle_wait, cluster: Some(agent(&cluster)), ..work };
        Some(Self { cluster, node, work, folder })
    }

    /// Writes a manifest with these lines in `[kubernetes]`.
    fn offer(&self, name: &str, lines: &str) {
        let text = format!(
            "name = \"{name}\"\nversion = \"1\"\n[kubernetes]\nport = 8080\n{lines}\n[ready]\npath = \"/health\"\n\
             timeout_s = 20\n"
        );
        fs::write(self.work.targets.join(format!("{name}.toml")), text).expect("a manifest");
    }

    async fn run(&self, job: &Job) -> Outcome {
        let outcome = execute::run(job, &self.work, &CancellationToken::new(), |_| {}).await;
        self.assert_clean().await;
        outcome
    }

    /// Runs a job while something happens once it is measured.
    async fn run_while(&self, job: &Job, happens: impl AsyncFnOnce()) -> Outcome {
        let (sender, mut phases) = tokio::sync::mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let running = execute::run(job, &self.work, &cancel, |phase| sender.send(phase).unwrap_or_default());
        let happening = async {
            while phases.recv().await.expect("phases") != Phase::Measuring {}
            happens().await;
        };
        tokio::join!(running, happening).0
    }

    /// Asserts that neither objects in the cluster nor files are left.
    async fn assert_clean(&self) {
        let all = ListParams::default();
        let client = || self.cluster.client();
        let deployments: Api<Deployment> = Api::default_namespaced(client());
        let pods: Api<Pod> = Api::default_namespaced(client());
        let services: Api<Service> = Api::default_namespaced(client());
        let managed = ListParams::default().labels("app.kubernetes.io/managed-by=brewbench");
        let deployments = deployments.list(&all).await.expect("a list").items;
        let pods = pods.list(&all).await.expect("a list").items;
        let services = services.list(&managed).await.expect("a list").items;
        assert!(
            deployments.is_empty() && pods.is_empty() && services.is_empty(),
            "{deployments:?} {pods:?} {services:?}"
        );
        assert_eq!(fs::read_dir(self.folder.path().join("work")).expect("a folder").count(), 0, "files are left");
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }
}

/// The cluster as an agent uses it, with little patience.
fn agent(cluster: &Cluster) -> Used {
    let [scheduling, pull_retries] = [Duration::from_secs(3); 2];
    let patience = Patience { scheduling, pull_retries, ..Patience::default() };
    let mut used = Used::new(cluster.client(), "default", "test");
    used.patience = patience;
    used
}

/// The bundled server, which cargo builds next to the tests.
fn server() -> Option<PathBuf> {
    let own = std::env::current_exe().expect("own path");
    let path = own.ancestors().nth(2).expect("target/profile/deps/test").join("rust-hyper");
    if !path.exists() {
        skip(&format!("no {}: cargo build -p rust-hyper", path.display()));
        return None;
    }
    Some(path)
}

fn node(server: &Path) -> NodeOptions {
    let image = Image::new(&["/usr/bin/rust-hyper"])
        .with_arguments(&["--listen", "0.0.0.0:8080"])
        .with_file(server, "/usr/bin/rust-hyper");
    let mut options = NodeOptions::new("node-1").with_image("rust-hyper:1", image);
    // Real kubelets read their containers every ten seconds.
    options.stats_interval = Duration::from_secs(3);
    options.labels.insert("node.kubernetes.io/instance-type".to_owned(), "test.large".to_owned());
    options.with_image("shell:1", Image::new(&["/bin/sh"]))
}

fn job(target: &str) -> Job {
    let scenario = Scenario {
        name: "hash".to_owned(),
        kind: ScenarioKind::K6,
        script: SCRIPT.to_owned(),
        files: BTreeMap::new(),
        defaults: BTreeMap::new(),
    };
    Job {
        run: RunId::now(),
        target: target.to_owned(),
        size: Size { name: "0.5/64MiB".to_owned(), vcpus: 0.5, memory_bytes: 64 << 20 },
        scenario,
        parameters: BTreeMap::new(),
        load: Load::Closed(Closed::new(Form::Constant { level: 4, duration_ms: 4_000 }).expect("a load")),
        warm_up_ms: 500,
        warm_up_max_ms: None,
        role: Role::Alone,
        profiled: false,
    }
}

fn reason(outcome: &Outcome) -> (&str, Cause) {
    match &outcome.ended {
        Ended::Failed { reason, cause } => (reason, *cause),
        ended => panic!("{ended:?}"),
    }
}

#[tokio::test]
async fn a_pod_is_loaded_and_measured_and_nothing_is_left() {
    let Some(bench) = Bench::start().await else { return };
    for (name, lines) in [("pod", ""), ("service", "service = true\n")] {
        bench.offer(
            name,
            &format!("image = \"rust-hyper:1\"\n{lines}node_selector = {{ \"kubernetes.io/hostname\" = \"node-1\" }}"),
        );
        if name == "service" {
            // No kube-proxy serves the addresses of Services here; that one is created and removed is all to see.
            let outcome = bench.run(&Job { load: job(name).load, ..job(name) }).await;
            assert_eq!(reason(&outcome).1, Cause::TargetNotReady);
            continue;
        }
        let outcome = bench.run(&job(name)).await;
        assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
        let identity = outcome.target.as_ref().expect("an identity");
        assert_eq!(identity.kind(), TargetKind::Kubernetes);
        assert!(identity.as_str().starts_with("sha256:"), "{identity:?}");
        assert_eq!((outcome.enforced.cpu, outcome.enforced.memory), (Mechanism::Pod, Mechanism::Pod));
        let facts = &outcome.environment;
        let named = ["load.node", "node.type", "node.cpu_manager", "node.qos"].map(|name| facts[name].as_str());
        assert_eq!(named, ["node-1", "test.large", "none", "Guaranteed"]);
        assert_eq!(outcome.conditions.shares_cores, Some(true));
        let series = outcome.series.as_ref().expect("a series").unpack().expect("a series");
        let usage = series.measured.expect("a measurement").usage;
        assert!(usage.len() >= 4, "{usage:?}");
        assert!(usage.iter().all(|sample| sample.target.cpu_us.is_some()), "{usage:?}");
        let used: u64 = usage.iter().filter_map(|sample| sample.target.cpu_us).sum();
        assert!((100_000..3_000_000).contains(&used), "half a core for four seconds: {used}");
        assert!(usage.iter().filter_map(|sample| sample.target.memory_bytes).max() > Some(1 << 20), "{usage:?}");
        let observed = outcome.observed.expect("observations");
        assert!(observed.throttled_us.is_some() && observed.oom_kills == Some(0), "{observed:?}");
        assert!(outcome.conditions.counters.is_some_and(|counters| counters.missing.len() == 1));
    }
}

#[tokio::test]
async fn what_cannot_start_is_explained() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("unknown-image", "image = \"nowhere.example/shop:9\"");
    bench.offer("exits", "image = \"shell:1\"\ncommand = [\"sh\", \"-c\", \"echo no configuration; exit 3\"]");
    bench.offer("eats", "image = \"shell:1\"\ncommand = [\"sh\", \"-c\", \"tail /dev/zero\"]");
    bench.offer("good", "image = \"rust-hyper:1\"");
    let huge = Size { name: "64/1GiB".to_owned(), vcpus: 64.0, memory_bytes: 1 << 30 };
    for (job, words, expected) in [
        (job("unknown-image"), &["can't pull its image yet", "not found"][..], Cause::TargetNotReady),
        (job("exits"), &["exit status 3", "no configuration"], Cause::TargetDied),
        (job("eats"), &["OOM-killed"], Cause::TargetOutOfMemory),
        (Job { size: huge, ..job("good") }, &["waits for a node", "Insufficient cpu"], Cause::TargetNotReady),
    ] {
        let outcome = bench.run(&job).await;
        let (reason, cause) = reason(&outcome);
        assert!(words.iter().all(|word| reason.contains(word)), "{}: {reason}", job.target);
        assert_eq!(cause, expected, "{reason}");
    }
    let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": {"limits.memory": "1Mi"}}});
    let quotas: Api<ResourceQuota> = Api::default_namespaced(bench.cluster.client());
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).expect("a quota")).await.expect("created");
    let outcome = bench.run(&job("good")).await;
    assert!(reason(&outcome).0.contains("exceeded quota: small"), "{outcome:?}");
}

#[tokio::test]
async fn a_pod_that_ends_during_the_measurement_fails_the_run() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let delete = async || {
        let name = bench.pods().list(&ListParams::default()).await.expect("a list").items[0].name_any();
        bench.pods().delete(&name, &DeleteParams::default()).await.expect("deleted");
    };
    let outcome = bench.run_while(&job("good"), delete).await;
    assert!(reason(&outcome).0.contains("its Pod was deleted"), "{outcome:?}");
    bench.assert_clean().await;
    let evict = async || {
        let name = bench.pods().list(&ListParams::default()).await.expect("a list").items[0].name_any();
        bench.node.evict("default", &name);
    };
    let outcome = bench.run_while(&job("good"), evict).await;
    assert!(reason(&outcome).0.contains("Evicted"), "{outcome:?}");
    bench.assert_clean().await;
}

#[tokio::test]
async fn a_run_survives_an_outage_of_the_api_server() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let cancel = CancellationToken::new();
    let (sender, mut phases) = tokio::sync::mpsc::unbounded_channel();
    let Bench { cluster, work, .. } = &mut bench;
    let job = job("good");
    let running = execute::run(&job, work, &cancel, |phase| sender.send(phase).unwrap_or_default());
    let outage = async {
        while phases.recv().await.expect("phases") != Phase::Measuring {}
        cluster.stop_api_server();
        while phases.recv().await.expect("phases") != Phase::Collecting {}
        tokio::time::sleep(Duration::from_secs(3)).await;
        cluster.start_api_server().await;
    };
    let (outcome, ()) = tokio::join!(running, outage);
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    bench.assert_clean().await;
}

#[tokio::test]
async fn a_cancelled_run_and_a_killed_agent_leave_nothing() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    bench.offer("unknown-image", "image = \"nowhere.example/shop:9\"");
    for (target, phase) in [("unknown-image", Phase::Preparing), ("good", Phase::WarmingUp), ("good", Phase::Measuring)]
    {
        for is_killed in [false, true] {
            let cancel = CancellationToken::new();
            let (sender, mut phases) = tokio::sync::mpsc::unbounded_channel();
            let job = job(target);
            let mut running =
                Box::pin(execute::run(&job, &bench.work, &cancel, |phase| sender.send(phase).unwrap_or_default()));
            let reached = async {
                while phases.recv().await.expect("phases") != phase {}
                tokio::time::sleep(Duration::from_millis(700)).await;
            };
            tokio::select! {
                outcome = &mut running => panic!("{outcome:?}"),
                () = reached => {}
            }
            if is_killed {
                // As a killed agent would, this stops without any step of its own; the next one finds what is left.
                drop(running);
                let swept = agent(&bench.cluster).sweep().await.expect("swept");
                assert_eq!(swept.len(), 1, "{target} in {phase:?}");
            } else {
                cancel.cancel();
                assert_eq!(running.await.ended, Ended::Cancelled);
                bench.assert_clean().await;
            }
        }
    }
}
