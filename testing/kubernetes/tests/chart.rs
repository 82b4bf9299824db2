//! The Helm charts of server and agent, and the plain manifests of an agent in a real API server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use brewbench_agent::target::Cluster as Used;
use brewbench_kubernetes_testing::Cluster;
use brewbench_testing::skip;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{PersistentVolumeClaim, Secret, ServiceAccount},
};
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};

const NAMESPACE: &str = "brewbench";
const RELEASE: &str = "brewbench-agent";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Finds Helm beside the control plane's programs; `None`, with a printed reason, if it is not there.
fn helm() -> Option<PathBuf> {
    let cache = std::env::var_os("BREWBENCH_KUBERNETES")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/brewbench/kubernetes")))?;
    let versions = fs::read_dir(cache).into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("helm")).find(|helm| helm.exists());
    if found.is_none() {
        skip("no helm: make kubernetes");
    }
    found
}

/// Runs Helm; returns what it prints.
fn run(helm: &Path, arguments: &[&str]) -> String {
    let output = Command::new(helm).args(arguments).current_dir(repository()).output().expect("helm");
    let (text, faults) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "helm {arguments:?}: {faults}");
    text.into_owned()
}

#[test]
fn the_plain_manifests_are_those_of_the_chart() {
    let Some(helm) = helm() else { return };
    let file = repository().join("deploy/kubernetes/agent.yaml");
    let server = "server=https://bench.example.com";
    let chart = "deploy/kubernetes/chart";
    let kube = ["--namespace", NAMESPACE, "--kube-version", "1.36.3"];
    let rendered = run(&helm, &[&["template", RELEASE, chart, "--set", server][..], &kube].concat());
    let head =
        "# An agent in the namespace brewbench. Set BREWBENCH_SERVER and the key, and add manifests of targets.\n";
    let rendered = format!("{head}{rendered}");
    if std::env::var_os("BREWBENCH_WRITE_DOCS").is_some() {
        fs::write(&file, &rendered).expect("written");
    }
    let committed = fs::read_to_string(&file).expect("the manifests");
    assert_eq!(committed, rendered, "BREWBENCH_WRITE_DOCS=1 writes it");
}

#[test]
fn the_chart_of_the_server_has_one_writer_and_a_backup() {
    let Some(helm) = helm() else { return };
    let chart = "deploy/kubernetes/server-chart";
    let values = ["--set", "host=bench.example.com,backup.enabled=true,backup.tokenSecret=backup"];
    run(&helm, &[&["lint", "--strict", chart][..], &values].concat());
    let rendered = run(&helm, &[&["template", "brewbench", chart, "--kube-version", "1.36.3"][..], &values].concat());
    for part in ["kind: Deployment", "replicas: 1", "type: Recreate", "kind: Ingress", "kind: CronJob"] {
        assert!(rendered.contains(part), "{part}: {rendered}");
    }
}

/// A volume belongs to root, and its group may write to it: the agent would refuse it as a state folder.
#[test]
fn the_agent_keeps_its_state_in_a_folder_of_its_own() {
    let manifests = fs::read_to_string(repository().join("deploy/kubernetes/agent.yaml")).expect("the manifests");
    let after = |name: &str| {
        let (_, rest) = manifests.split_once(name).expect(name);
        rest.split_whitespace().next().expect("a value").to_owned()
    };
    let (state, volume) = (after("name: BREWBENCH_STATE\n              value: "), after("mountPath: "));
    assert!(state.starts_with(&format!("{volume}/")), "{state} in {volume}");
}

#[tokio::test]
async fn the_chart_is_installed_upgraded_and_removed_and_permits_what_an_agent_needs_and_no_more() {
    let (Some(helm), Some(cluster)) = (helm(), Cluster::start().await) else { return };
    let admin = cluster.kubeconfig_for("admin").display().to_string();
    let common = ["--kubeconfig", &admin, "--namespace", NAMESPACE];
    let install = |verb: &str, further: &[&str]| {
        let values = ["--set", "server=https://bench.example.com", "--set", "key=bbo_secret"];
        let chart = [verb, RELEASE, "deploy/kubernetes/chart"];
        run(&helm, &[&chart[..], &common, &values, further].concat())
    };
    install("install", &["--create-namespace"]);

    let agent = as_service_account(&cluster).await;
    let used = Used::new(agent.clone(), NAMESPACE, "test");
    assert_eq!(used.missing_permissions().await, Ok(Vec::new()));
    assert_eq!(used.missing_generator_permissions().await.map(|missing| missing.len()), Ok(9), "not by default");
    let secrets: Api<Secret> = Api::namespaced(agent.clone(), NAMESPACE);
    let refused = secrets.list(&ListParams::default()).await.expect_err("least privilege").to_string();
    assert!(refused.contains("forbidden"), "{refused}");
    let others: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(agent, "default");
    assert!(others.list(&ListParams::default()).await.is_err(), "one namespace only");

    install("upgrade", &["--set", "generators=most = 4"]);
    assert_eq!(used.missing_generator_permissions().await, Ok(Vec::new()));
    install("upgrade", &["--set", "nodeMetrics=false"]);
    let missing = used.missing_permissions().await.expect("an answer");
    assert_eq!(missing.len(), 2, "{missing:?}");
    assert_eq!(missing[1], "not permitted to get nodes/proxy, to read CPU time and memory of targets");

    run(&helm, &[&["uninstall", RELEASE, "--wait"][..], &common].concat());
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), NAMESPACE);
    for _ in 0..100 {
        if claims.list(&ListParams::default()).await.expect("a list").items.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(left(&cluster, &helm, &common).await, Vec::<String>::new());
}

/// Returns a client with a token of the agent's service account.
async fn as_service_account(cluster: &Cluster) -> Client {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), NAMESPACE);
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token: TokenRequest =
        accounts.create_subresource("token", RELEASE, &PostParams::default(), &request).await.expect("a token");
    let token = token.status.and_then(|status| status.token).expect("a token");
    let config = Kubeconfig::read_from(cluster.kubeconfig_with_token(&token)).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("a configuration");
    Client::try_from(config).expect("a client")
}

/// Returns what is left of a release.
async fn left(cluster: &Cluster, helm: &Path, common: &[&str]) -> Vec<String> {
    let own = ListParams::default().labels(&format!("app.kubernetes.io/instance={RELEASE}"));
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), NAMESPACE);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), NAMESPACE);
    let roles: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(cluster.client());
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), NAMESPACE);
    let mut names = Vec::new();
    names.extend(secrets.list(&own).await.expect("a list").items.into_iter().filter_map(|one| one.metadata.name));
    let claims = claims.list(&ListParams::default()).await.expect("a list");
    names.extend(claims.items.into_iter().filter_map(|one| one.metadata.name));
    names.extend(roles.list(&own).await.expect("a list").items.into_iter().filter_map(|one| one.metadata.name));
    names.extend(accounts.list(&own).await.expect("a list").items.into_iter().filter_map(|one| one.metadata.name));
    names.extend(run(helm, &[&["list", "--short"][..], common].concat()).lines().map(str::to_owned));
    names
}
