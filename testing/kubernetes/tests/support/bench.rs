//! An agent's part of a run, in a cluster with one node.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use brewbench_agent::{
    engine::k6::K6,
    generators::Generators,
    host::idle_wait::IdleWait,
    run::{context::RunContext, execute},
    sandbox::Sandbox,
    target::{Cluster as Used, kubernetes::Patience},
};
use brewbench_kubernetes_testing::{Cluster, Image, Node, NodeOptions, k6_operator::STARTER};
use brewbench_testing::skip;
use brewbench_wire::{
    Phase, RunId,
    job::{Job, Role, Size},
    load::{Closed, Form, Load},
    outcome::{Cause, Ended, Outcome},
    run_spec::RunSpec,
    scenario::Scenario,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job as BatchJob,
    core::v1::{ConfigMap, LimitRange, Pod, Service},
};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const SCRIPT: &str = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/hash'); }";

/// Many of them fit on the node of the tests.
const GENERATORS: &str = "image = \"k6:1\"\nvcpus = 0.2\nmemory_mib = 256\nmost = 20\n";

/// A k6 whose series does not arrive, as if a network policy dropped it.
const SILENT: &str = "#!/bin/sh\nunset K6_OUT\nexec /usr/bin/k6-real \"$@\"\n";

/// An agent's part of a run, in a cluster with one node.
pub struct Bench {
    pub cluster: Cluster,
    pub node: Node,
    pub work: RunContext,
    folder: tempfile::TempDir,
}

impl Bench {
    /// `None`, with a printed reason, without a control plane, k6 or the bundled server.
    pub async fn start() -> Option<Self> {
        let cluster = Cluster::start().await?;
        let k6 = K6::find(None).await.map_err(|fault| skip(&fault.to_string())).ok()?;
        let folder = tempfile::tempdir().expect("a folder");
        let silent = folder.path().join("silent");
        fs::write(&silent, SILENT).expect("a script");
        fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).expect("executable");
        let silent = Image::new(&["k6"]).with_file(silent, "/usr/bin/k6").with_file(k6.path(), "/usr/bin/k6-real");
        let node = node("node-1", &server()?, k6.path()).with_image("silent:1", silent);
        let node = Node::start(&cluster, node).await;
        let generators = Generators::parse(GENERATORS, &k6.offer().version).expect("generators");
        let [targets, work] = ["targets", "work"].map(|name| folder.path().join(name));
        for folder in [&targets, &work] {
            fs::create_dir(folder).expect("a folder");
        }
        let work = RunContext::new(Sandbox::none("test pods"), k6, targets, work);
        let idle_wait = IdleWait { longest: Duration::ZERO, ..work.idle_wait };
        let work = RunContext { idle_wait, cluster: Some(agent(&cluster)), generators: Some(generators), ..work };
        Some(Self { cluster, node, work, folder })
    }

    /// Writes a manifest with these lines in `[kubernetes]`.
    pub fn offer(&self, name: &str, lines: &str) {
        let text = format!(
            "name = \"{name}\"\nversion = \"1\"\n[kubernetes]\nport = 8080\n{lines}\n[ready]\npath = \"/health\"\n\
             timeout_s = 20\n"
        );
        fs::write(self.work.targets.join(format!("{name}.toml")), text).expect("a manifest");
    }

    pub async fn run(&self, job: &Job) -> Outcome {
        let outcome = execute::run(job, &self.work, &CancellationToken::new(), |_| {}).await;
        self.assert_clean().await;
        outcome
    }

    /// Runs a job while something happens once it is measured, unless the run ends before.
    pub async fn run_while(&self, job: &Job, happens: impl AsyncFnOnce()) -> Outcome {
        let (sender, mut phases) = tokio::sync::mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let mut running =
            Box::pin(execute::run(job, &self.work, &cancel, |phase| sender.send(phase).unwrap_or_default()));
        let happening = async {
            while phases.recv().await.expect("phases") != Phase::Measuring {}
            happens().await;
        };
        tokio::select! {
            outcome = &mut running => outcome,
            () = happening => running.await,
        }
    }

    /// Runs a job until a moment in a phase, and then cancels it; or drops it, as a killed agent would, which takes no step
    /// of its own. Returns what the next agent then finds.
    pub async fn interrupt(&self, job: &Job, phase: Phase, is_killed: bool) -> Vec<String> {
        let cancel = CancellationToken::new();
        let (sender, mut phases) = tokio::sync::mpsc::unbounded_channel();
        let mut running =
            Box::pin(execute::run(job, &self.work, &cancel, |phase| sender.send(phase).unwrap_or_default()));
        let reached = async {
            while phases.recv().await.expect("phases") != phase {}
            tokio::time::sleep(Duration::from_millis(700)).await;
        };
        tokio::select! {
            outcome = &mut running => panic!("{outcome:?}"),
            () = reached => {}
        }
        if is_killed {
            drop(running);
            return agent(&self.cluster).sweep().await.expect("swept");
        }
        cancel.cancel();
        assert_eq!(running.await.ended, Ended::Cancelled);
        self.assert_clean().await;
        Vec::new()
    }

    /// Asserts that neither objects in the cluster nor files are left.
    pub async fn assert_clean(&self) {
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
        let jobs: Api<BatchJob> = Api::default_namespaced(client());
        let maps: Api<ConfigMap> = Api::default_namespaced(client());
        let (jobs, maps) =
            (jobs.list(&all).await.expect("a list").items, maps.list(&managed).await.expect("a list").items);
        assert!(jobs.is_empty() && maps.is_empty(), "{jobs:?} {maps:?}");
        assert_eq!(fs::read_dir(self.folder.path().join("work")).expect("a folder").count(), 0, "files are left");
    }

    /// Limits what a container may write, from now on.
    pub async fn limit_disk(&self) {
        let limits = json!({"limits": [{"type": "Container", "default": {"ephemeral-storage": "16Mi"}}]});
        let limits = json!({"metadata": {"name": "small"}, "spec": limits});
        let ranges: Api<LimitRange> = Api::default_namespaced(self.cluster.client());
        ranges.create(&PostParams::default(), &serde_json::from_value(limits).expect("limits")).await.expect("created");
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }
}

/// The cluster as an agent uses it, with little patience.
pub fn agent(cluster: &Cluster) -> Used {
    let (scheduling, pull_retries) = (Duration::from_secs(8), Duration::from_secs(3));
    let patience = Patience { scheduling, pull_retries, ..Patience::default() };
    let mut used = Used::new(cluster.client(), "default", "test");
    used.patience = patience;
    used
}

/// The bundled server, which cargo builds next to the tests.
pub fn server() -> Option<PathBuf> {
    let own = std::env::current_exe().expect("own path");
    let path = own.ancestors().nth(2).expect("target/profile/deps/test").join("rust-hyper");
    if !path.exists() {
        skip(&format!("no {}: cargo build -p rust-hyper", path.display()));
        return None;
    }
    Some(path)
}

/// A node with all images of the tests.
pub fn node(name: &str, server: &Path, k6: &Path) -> NodeOptions {
    let image = Image::new(&["/usr/bin/rust-hyper"])
        .with_arguments(&["--listen", "0.0.0.0:8080"])
        .with_file(server, "/usr/bin/rust-hyper");
    let mut options = NodeOptions::new(name).with_image("rust-hyper:1", image);
    options.labels.insert("node.kubernetes.io/instance-type".to_owned(), "test.large".to_owned());
    options
        .with_image("shell:1", Image::new(&["/bin/sh"]))
        .with_image(STARTER, Image::new(&["/bin/sh"]))
        .with_image("k6:1", Image::new(&["k6"]).with_file(k6, "/usr/bin/k6"))
}

pub fn job(target: &str) -> Job {
    let scenario = Scenario::of_script("hash", SCRIPT);
    Job {
        run: RunId::now(),
        experiment: None,
        targets: Vec::new(),
        scenario,
        role: Role::Alone,
        partner: None,
        spec: RunSpec {
            target: target.to_owned(),
            size: Some(Size { name: "0.5/64MiB".to_owned(), vcpus: 0.5, memory_bytes: 64 << 20, replicas: 1 }),
            load: Some(Load::Closed(Closed::new(Form::Constant { level: 4, duration_ms: 4_000 }).expect("a load"))),
            warm_up_s: Some(0.5),
            ..RunSpec::default()
        },
    }
}

pub fn reason(outcome: &Outcome) -> (&str, Cause) {
    match &outcome.ended {
        Ended::Failed { reason, cause } => (reason, *cause),
        ended => panic!("{ended:?}"),
    }
}
