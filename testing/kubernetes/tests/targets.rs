//! Real runs of Pods: k6 loads them, their node reports their figures, and whatever happens, nothing of them is left.

#[path = "support/bench.rs"]
mod bench;

use std::{fs, time::Duration};

use bench::{Bench, job, node, reason, server};
use brewbench_agent::run::execute;
use brewbench_kubernetes_testing::{Node, ServiceProxy};
use brewbench_wire::{
    Phase, RunId,
    job::{Job, Size},
    load::{Closed, Form, Load},
    outcome::{Cause, Ended, Mechanism},
    run_spec::RunSpec,
    target::TargetKind,
};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Pods that the scheduler spreads over the nodes.
const SPREAD: &str = "metadata: { labels: { app: shop } }
spec:
  containers: [{ name: shop, image: 'rust-hyper:1' }]
  topologySpreadConstraints:
    - topologyKey: kubernetes.io/hostname
      maxSkew: 1
      whenUnsatisfiable: DoNotSchedule
      labelSelector: { matchLabels: { app: shop } }
";

#[tokio::test]
async fn a_pod_is_loaded_and_measured_and_nothing_is_left() {
    let Some(bench) = Bench::start().await else { return };
    let _proxy = ServiceProxy::start(&bench.cluster);
    for (name, lines) in [("pod", ""), ("service", "service = true\n")] {
        bench.offer(
            name,
            &format!("image = \"rust-hyper:1\"\n{lines}node_selector = {{ \"kubernetes.io/hostname\" = \"node-1\" }}"),
        );
        let outcome = bench.run(&job(name)).await;
        assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
        assert_eq!(outcome.environment["net.target_path"].to_lowercase(), name);
        let identity = outcome.target.as_ref().expect("an identity");
        assert_eq!(identity.kind(), TargetKind::Kubernetes);
        assert!(identity.text().starts_with("sha256:"), "{identity:?}");
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
        // The Pod uses the CPUs of this machine, too, and is no other program.
        let counted = outcome.conditions.core_use.expect("the use of all cores").target_us;
        assert!((1..=used).contains(&counted), "{counted} of {used}");
        let observed = outcome.observed.expect("observations");
        assert!(observed.throttled_us.is_some() && observed.oom_kills == Some(0), "{observed:?}");
        assert!(outcome.conditions.counters.is_some_and(|counters| counters.missing.len() == 1));
    }
}

#[tokio::test]
async fn replicas_share_the_load_and_their_figures_add_up() {
    let Some(bench) = Bench::start().await else { return };
    let proxy = ServiceProxy::start(&bench.cluster);
    let options = node("node-2", &server().expect("the bundled server"), bench.work.engines.k6().expect("k6").path());
    let _other = Node::start(&bench.cluster, options).await;
    fs::write(bench.work.targets.join("shop.yaml"), SPREAD).expect("a template");
    bench.offer("shop", "template = \"shop.yaml\"");
    let size = Size { name: "3x0.1/64MiB".to_owned(), vcpus: 0.1, memory_bytes: 64 << 20, replicas: 3 };
    let load = Load::Closed(Closed::new(Form::Constant { level: 12, duration_ms: 6_000 }).expect("a load"));
    let job = Job { spec: RunSpec { size: Some(size), load: Some(load), ..job("shop").spec }, ..job("shop") };
    let outcome = bench.run(&job).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(outcome.environment["load.node"], "node-1, node-2");
    assert_eq!(outcome.environment["node.type"], "test.large");
    assert_eq!(outcome.environment["net.target_path"], "Service");
    let identity = outcome.target.as_ref().expect("an identity");
    assert!(identity.text().starts_with("sha256:"), "{identity:?}");
    let usage = outcome.series.as_ref().expect("a series").unpack().expect("a series").measured.expect("a measurement");
    let target = usage.usage.iter().map(|sample| sample.target);
    let used: Option<u64> = target.clone().map(|target| target.cpu_us).sum();
    assert!(
        used.is_some_and(|used| (1..2_100_000).contains(&used)),
        "three tenths of a core for six seconds: {used:?}"
    );
    assert_eq!(proxy.loaded(), 3);
    let (largest, one) = (target.filter_map(|target| target.memory_bytes).max(), 1 << 20);
    assert!(largest > Some(3 * one), "{largest:?}");
    assert!(outcome.observed.is_some_and(|observed| observed.throttled_us > Some(0)), "{:?}", outcome.observed);

    let delete = async || {
        let name = bench.pods().list(&ListParams::default()).await.expect("a list").items[0].name_any();
        bench.pods().delete(&name, &DeleteParams::default()).await.expect("deleted");
    };
    let outcome = bench.run_while(&Job { run: RunId::now(), ..job }, delete).await;
    let (why, cause) = reason(&outcome);
    assert!(why.contains("one of 3 replicas, on node-") && why.contains("its Pod was deleted"), "{why}");
    assert_eq!(cause, Cause::TargetDied);
    bench.assert_clean().await;
}

#[tokio::test]
async fn what_cannot_start_is_explained() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("unknown-image", "image = \"nowhere.example/shop:9\"");
    bench.offer("exits", "image = \"shell:1\"\ncommand = [\"sh\", \"-c\", \"echo no configuration; exit 3\"]");
    bench.offer("eats", "image = \"shell:1\"\ncommand = [\"sh\", \"-c\", \"tail /dev/zero\"]");
    bench.offer("good", "image = \"rust-hyper:1\"");
    let huge = Size { name: "64/1GiB".to_owned(), vcpus: 64.0, memory_bytes: 1 << 30, replicas: 1 };
    for (job, words, expected) in [
        (job("unknown-image"), &["can't pull its image yet", "not found"][..], Cause::TargetNotReady),
        (job("exits"), &["exit status 3", "no configuration"], Cause::TargetDied),
        (job("eats"), &["OOM-killed"], Cause::TargetOutOfMemory),
        (
            Job { spec: RunSpec { size: Some(huge), ..job("good").spec }, ..job("good") },
            &["waits for a node", "Insufficient cpu"],
            Cause::TargetNotReady,
        ),
    ] {
        let outcome = bench.run(&job).await;
        let (reason, cause) = reason(&outcome);
        assert!(words.iter().all(|word| reason.contains(word)), "{}: {reason}", job.spec.target);
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
        bench.node.fill_disk(&name, "target").await;
    };
    bench.limit_disk().await;
    let load = Load::Closed(Closed::new(Form::Constant { level: 4, duration_ms: 60_000 }).expect("a load"));
    let long = Job { spec: RunSpec { load: Some(load), ..job("good").spec }, ..job("good") };
    let outcome = bench.run_while(&long, evict).await;
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
async fn a_run_survives_a_restart_of_its_kubelet() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let outcome = bench.run_while(&job("good"), async || bench.node.kill_kubelet()).await;
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
            let swept = bench.interrupt(&job(target), phase, is_killed).await;
            assert_eq!(swept.len(), usize::from(is_killed), "{target} in {phase:?}: {swept:?}");
        }
    }
}
