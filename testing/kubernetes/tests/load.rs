//! Real load from Pods: several k6 start together, push to the agent, and are judged one by one.

#[path = "support/bench.rs"]
mod bench;

use std::{fs, time::Duration};

use bench::{Bench, job, reason};
use brewbench_agent::{generators::Generators, run::execute, target::kubernetes::Patience};
use brewbench_kubernetes_testing::{
    Image, Node, NodeOptions,
    k6_operator::{K6Operator, install_resource},
};
use brewbench_wire::{
    Phase, RunId, hex,
    job::Job,
    load::{Closed, Form, Load},
    outcome::{Cause, Ended, Generator, Outcome},
    reports::read,
    run_spec::RunSpec,
    scenario::Scenario,
    series::Second,
};
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, ServiceAccount};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

/// A target that may run where only restricted Pods are admitted.
const RESTRICTED: &str = "spec:
  securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: RuntimeDefault } }
  containers:
    - name: good
      image: rust-hyper:1
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } }
";

/// Creates the quota `small` for one resource.
async fn limit(bench: &Bench, resource: &str, most: &str) {
    let quota = json!({"metadata": {"name": "small"}, "spec": {"hard": {resource: most}}});
    let quotas: Api<ResourceQuota> = Api::default_namespaced(bench.cluster.client());
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).expect("a quota")).await.expect("created");
}

fn distributed(target: &str, generators: u32) -> Job {
    Job { spec: RunSpec { cluster_generators: generators, ..job(target).spec }, ..job(target) }
}

/// Returns the requests in the series of a generator.
fn requests(generator: &Generator) -> u64 {
    let measured = generator.series.unpack().expect("a series").measured.expect("a measurement");
    measured.seconds.iter().map(Second::requests).sum()
}

#[tokio::test]
async fn every_request_of_every_generator_counts_once() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let outcome = bench.run(&distributed("good", 4)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(outcome.generators.len(), 4);
    for generator in &outcome.generators {
        let summary = read::parse(generator.summary.as_bytes()).expect("a summary");
        assert_eq!(requests(generator), summary.figures().requests, "{generator:?}");
        assert!(requests(generator) > 10, "{generator:?}");
    }
    // The agent's own k6 makes none of the load: its use is absent, not zero.
    let own = outcome.series.as_ref().expect("a series").unpack().expect("a series").measured.expect("a measurement");
    assert!(own.usage.iter().all(|sample| sample.generator.cpu_us.is_none()), "{:?}", own.usage);
}

#[tokio::test]
async fn k6_operator_starts_what_own_jobs_would() {
    let Some(bench) = Bench::start().await else { return };
    let _operator = K6Operator::install(&bench.cluster).await;
    // All of its Pods are admitted where only restricted ones are.
    let namespaces: Api<Namespace> = Api::all(bench.cluster.client());
    let restricted = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    namespaces.patch("default", &PatchParams::default(), &Patch::Merge(restricted)).await.expect("restricted");
    fs::write(bench.work.targets.join("good.yaml"), RESTRICTED).expect("a template");
    bench.offer("good", "template = \"good.yaml\"");
    let outcome = bench.run(&distributed("good", 3)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    for generator in &outcome.generators {
        assert!(generator.start_error_ms < 1_000.0, "{generator:?}");
        assert_eq!(
            requests(generator),
            read::parse(generator.summary.as_bytes()).expect("a summary").figures().requests
        );
    }
    // The target and two generators, but not the Pod that starts them.
    limit(&bench, "pods", "3").await;
    let outcome = bench.run(&distributed("good", 2)).await;
    let (why, cause) = reason(&outcome);
    assert!(why.contains("k6-operator can't start the generators: ") && why.contains("exceeded quota"), "{why}");
    assert_eq!(cause, Cause::Generator);
}

#[tokio::test]
async fn a_scenario_larger_than_a_config_map_reaches_every_generator() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let users: String = (10_000_000..10_200_000).flat_map(|number: u32| ["ä".to_owned(), number.to_string()]).collect();
    assert!(users.len() > 3 << 19);
    let digest = hex(&Sha256::digest(&users));
    let script = format!(
        "import http from 'k6/http'; import crypto from 'k6/crypto';
         if (crypto.sha256(open('./users.txt'), 'hex') !== '{digest}') {{ throw new Error('users.txt is damaged'); }}
         export default function () {{ http.get(__ENV.BASE_URL + '/hash'); }}"
    );
    let large = || {
        let mut job = distributed("good", 2);
        job.scenario = Scenario::of_script("users", &script).with_file("users.txt", users.clone());
        job
    };
    let outcome = bench.run(&large()).await;
    assert_eq!((&outcome.ended, outcome.generators.len()), (&Ended::Finished, 2), "{outcome:?}");
    let _operator = K6Operator::install(&bench.cluster).await;
    let outcome = bench.run(&large()).await;
    assert_eq!((&outcome.ended, outcome.generators.len()), (&Ended::Finished, 2), "{outcome:?}");
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("a process");
}

/// Returns the name of a Pod of the generators or, without them, of the target.
async fn pod_of(bench: &Bench, is_generator: bool) -> String {
    let pods = bench.pods().list(&ListParams::default()).await.expect("a list").items;
    let found = pods.iter().find(|pod| pod.labels().contains_key("job-name") == is_generator);
    found.expect("a Pod").name_any()
}

#[tokio::test]
async fn a_generator_that_ends_early_fails_the_run_by_its_number() {
    let Some(bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let job = || distributed("good", 2);
    let kill = async || {
        let pod = pod_of(&bench, true).await;
        send(bench.node.pid(&pod, "k6").await, Signal::SIGKILL);
    };
    let outcome = bench.run_while(&job(), kill).await;
    assert!(reason(&outcome).0.contains("(node-1) ended early: exit status 137"), "{outcome:?}");
    assert_eq!(reason(&outcome).1, Cause::Generator);
    bench.assert_clean().await;
    let evict = async || bench.node.fill_disk(&pod_of(&bench, true).await, "k6").await;
    bench.limit_disk().await;
    let outcome = bench.run_while(&long(2), evict).await;
    assert!(reason(&outcome).0.contains("Evicted"), "{outcome:?}");
    bench.assert_clean().await;
    let delete = async || {
        let pod = pod_of(&bench, true).await;
        bench.pods().delete(&pod, &DeleteParams::default()).await.expect("deleted");
    };
    let outcome = bench.run_while(&job(), delete).await;
    assert!(reason(&outcome).0.contains("its Pod was deleted"), "{outcome:?}");
    bench.assert_clean().await;
    let target = async || {
        let pod = pod_of(&bench, false).await;
        bench.pods().delete(&pod, &DeleteParams::default()).await.expect("deleted");
    };
    let outcome = bench.run_while(&job(), target).await;
    assert!(reason(&outcome).0.contains("ended during the load: its Pod was deleted"), "{outcome:?}");
    bench.assert_clean().await;
}

#[tokio::test]
async fn what_keeps_generators_from_the_load_is_explained() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    // Not in the agent's own inspection, which has no virtual users.
    let eats = "const all = []; for (let i = 0; __VU && i < 1e5; i++) all.push(new Array(1e4).fill(i));
        export default () => {};";
    let mut hungry = distributed("good", 2);
    hungry.scenario = Scenario::of_script("hungry", eats);
    hungry.spec.warm_up_s = None;
    let small = "image = \"k6:1\"\nvcpus = 0.2\nmemory_mib = 64\n";
    let cases = [
        (small, &hungry, &["OOM-killed"][..]),
        (
            "image = \"nowhere.example/k6:9\"\nvcpus = 0.2\n",
            &distributed("good", 2),
            &["can't pull its image", "not found"],
        ),
        ("image = \"k6:1\"\nvcpus = 64\n", &distributed("good", 2), &["waits for a node", "Insufficient cpu"]),
        (
            "image = \"silent:1\"\nvcpus = 0.2\n",
            &distributed("good", 2),
            &["its series does not arrive at http://", "network policy"],
        ),
        ("image = \"k6:1\"\nmost = 1\n", &distributed("good", 2), &["this agent's owner allows 1"]),
    ];
    for (file, job, words) in cases {
        bench.work.generators = Some(Generators::parse(file, "1.8.1").expect("a file"));
        let job = Job { run: RunId::now(), ..job.clone() };
        let outcome = bench.run(&job).await;
        let (reason, _) = reason(&outcome);
        assert!(words.iter().all(|word| reason.contains(word)), "{file}: {reason}");
    }
    bench.work.generators =
        Some(Generators::parse("image = \"k6:1\"\nvcpus = 0.2\nmemory_mib = 256\n", "1").expect("a file"));
    limit(&bench, "limits.memory", "300Mi").await;
    let outcome = bench.run(&distributed("good", 2)).await;
    assert!(reason(&outcome).0.contains("exceeded quota: small"), "{outcome:?}");
}

#[tokio::test]
async fn an_operator_of_another_version_is_left_alone() {
    let Some(bench) = Bench::start().await else { return };
    install_resource(&bench.cluster, "v1beta9").await;
    bench.offer("good", "image = \"rust-hyper:1\"");
    let outcome = bench.run(&distributed("good", 1)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
}

/// Runs a load while the API server is away for a time, from a moment in the measurement on.
async fn outage(bench: &mut Bench, moment: Duration, lasts: Duration) -> Outcome {
    let cancel = CancellationToken::new();
    let (sender, mut phases) = tokio::sync::mpsc::unbounded_channel();
    let Bench { cluster, work, .. } = bench;
    let job = distributed("good", 2);
    let running = execute::run(&job, work, &cancel, |phase| sender.send(phase).unwrap_or_default());
    let outage = async {
        while phases.recv().await.expect("phases") != Phase::Measuring {}
        tokio::time::sleep(moment).await;
        cluster.stop_api_server();
        tokio::time::sleep(lasts).await;
        cluster.start_api_server().await;
    };
    let (outcome, ()) = tokio::join!(running, outage);
    bench.assert_clean().await;
    outcome
}

#[tokio::test]
async fn a_load_survives_a_minute_without_the_api_server() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    let outcome = outage(&mut bench, Duration::ZERO, Duration::from_mins(1)).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(outcome.generators.len(), 2);
}

#[tokio::test]
async fn a_cancelled_load_and_a_killed_agent_leave_nothing() {
    let Some(bench) = Bench::start().await else { return };
    let _operator = K6Operator::install(&bench.cluster).await;
    bench.offer("good", "image = \"rust-hyper:1\"");
    for phase in [Phase::WarmingUp, Phase::Measuring] {
        for is_killed in [false, true] {
            let swept = bench.interrupt(&distributed("good", 2), phase, is_killed).await;
            assert!(!is_killed || swept.len() >= 3, "a Deployment, a TestRun and a ConfigMap: {swept:?}");
        }
    }
}

/// Returns a longer load, whose generators can be lost in its middle.
fn long(generators: u32) -> Job {
    let form = Form::Constant { level: 4, duration_ms: 60_000 };
    Job {
        spec: RunSpec {
            load: Some(Load::Closed(Closed::new(form).expect("a load"))),
            ..distributed("good", generators).spec
        },
        ..distributed("good", generators)
    }
}

#[tokio::test]
async fn a_generator_whose_node_dies_or_that_goes_silent_is_lost() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"\nnode_selector = { \"kubernetes.io/hostname\" = \"node-1\" }");
    let file = "image = \"k6:1\"\nvcpus = 0.2\nnode_selector = { \"kubernetes.io/hostname\" = \"node-2\" }\n";
    bench.work.generators = Some(Generators::parse(file, "1.8.1").expect("a file"));
    let k6 = bench.work.engines.k6().expect("k6").path().to_owned();
    let image = Image::new(&["k6"]).with_file(k6, "/usr/bin/k6");
    let mut other = Node::start(&bench.cluster, NodeOptions::new("node-2").with_image("k6:1", image)).await;
    let freeze = async || {
        let pod = pod_of(&bench, true).await;
        send(other.pid(&pod, "k6").await, Signal::SIGSTOP);
    };
    let outcome = bench.run_while(&long(2), freeze).await;
    assert!(reason(&outcome).0.contains("(node-2) was lost: nothing arrived from it for 30 s"), "{outcome:?}");
    bench.assert_clean().await;
    // Nobody ends the Pods of a dead node.
    if let Some(cluster) = &mut bench.work.cluster {
        cluster.patience.removal = Duration::from_secs(2);
    }
    let outcome = bench.run_while(&long(2), async || other.kill()).await;
    let (reason, cause) = reason(&outcome);
    // This cluster notices within seconds; others take minutes, and the silence counts first.
    assert!(reason.contains("(node-2) ended early: its Pod was deleted: DeletionByTaintManager"), "{outcome:?}");
    assert_eq!(cause, Cause::Generator);
}

#[tokio::test]
async fn drained_pods_and_a_deleted_namespace_fail_the_run_with_the_reason() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    for is_generator in [true, false] {
        let drain = async || {
            let pod = pod_of(&bench, is_generator).await;
            bench.pods().evict(&pod, &EvictParams::default()).await.expect("evicted");
        };
        let outcome = bench.run_while(&distributed("good", 2), drain).await;
        assert!(reason(&outcome).0.contains("its Pod was deleted"), "{outcome:?}");
        bench.assert_clean().await;
    }
    let namespaces: Api<Namespace> = Api::all(bench.cluster.client());
    let namespace = json!({"metadata": {"name": "short-lived"}});
    let namespace = serde_json::from_value(namespace).expect("a namespace");
    namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    let accounts: Api<ServiceAccount> = Api::namespaced(bench.cluster.client(), "short-lived");
    while accounts.get_opt("default").await.expect("an answer").is_none() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bench.work.cluster.as_mut().expect("a cluster").namespace = "short-lived".to_owned();
    let delete = async || {
        namespaces.delete("short-lived", &DeleteParams::default()).await.expect("deleted");
    };
    let outcome = bench.run_while(&long(2), delete).await;
    assert!(reason(&outcome).0.contains("its Pod was deleted"), "{outcome:?}");
    bench.assert_clean().await;
}

/// Kills each victim as often as `BREWBENCH_CHAOS` says, once by default: no run may end without an outcome, and nothing
/// may be left.
#[tokio::test]
async fn whatever_is_killed_every_run_ends_and_nothing_is_left() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.offer("good", "image = \"rust-hyper:1\"");
    // The scheduler needs a while to find an API server that was away.
    bench.work.cluster.as_mut().expect("a cluster").patience = Patience::default();
    let rounds = std::env::var("BREWBENCH_CHAOS").map_or(1, |times| times.parse().expect("a number"));
    for round in 0..rounds {
        let moment = Duration::from_millis(200 + round * 150);
        let phase = if round % 2 == 0 { Phase::Measuring } else { Phase::WarmingUp };
        let swept = bench.interrupt(&distributed("good", 2), phase, true).await;
        assert!(!swept.is_empty(), "round {round}: a killed agent leaves what the next one removes");
        for is_generator in [true, false] {
            let kill = async || {
                tokio::time::sleep(moment).await;
                let pod = pod_of(&bench, is_generator).await;
                let container = if is_generator { "k6" } else { "target" };
                send(bench.node.pid(&pod, container).await, Signal::SIGKILL);
            };
            let outcome = bench.run_while(&distributed("good", 2), kill).await;
            assert!(matches!(outcome.ended, Ended::Failed { .. }), "round {round}: {outcome:?}");
            bench.assert_clean().await;
        }
        let outcome = outage(&mut bench, moment, Duration::from_secs(2)).await;
        assert_eq!(outcome.ended, Ended::Finished, "round {round}: {outcome:?}");
    }
}
