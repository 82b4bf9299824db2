//! The fixture itself: a control plane, and Pods on a test node.

mod support;

use std::{path::Path, time::Duration};

use brewbench_kubernetes_testing::{Cluster, Image, Node, NodeOptions};
use futures_util::{AsyncBufReadExt, StreamExt};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{self, ConfigMap, Event, LimitRange, Pod},
    rbac::v1::RoleBinding,
};
use kube::{
    Api,
    api::{ListParams, LogParams, PostParams},
};
use serde_json::{Value, json};
use support::{Pods, get, is_ready, pod, state};

#[tokio::test]
async fn a_pod_runs_answers_and_is_measured() {
    let Some(cluster) = Cluster::start().await else { return };
    let node = Node::start(&cluster, NodeOptions::new("node-1")).await;
    let _other = Node::start(&cluster, NodeOptions::new("node-2")).await;
    let pods = Pods::of(&cluster);
    let script = json!({"metadata": {"name": "scripts"}, "data": {"page": "content of a ConfigMap"}});
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    maps.create(&PostParams::default(), &serde_json::from_value(script).expect("a map")).await.expect("created");

    let serve = "echo $GREETING; echo second; cd /scripts; exec httpd -f -v -p 8000";
    let mut web = pod(
        "web",
        serve,
        json!({
            "env": [{"name": "GREETING", "value": "hello from $(NAME)"}, {"name": "NAME", "value": "x"}],
            "readinessProbe": {"httpGet": {"path": "/page", "port": 8000}},
            "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}},
            "volumeMounts": [{"name": "scripts", "mountPath": "/scripts"}, {"name": "empty", "mountPath": "/data"}],
        }),
    );
    web["spec"]["nodeName"] = "node-1".into();
    web["spec"]["volumes"] =
        json!([{"name": "scripts", "configMap": {"name": "scripts"}}, {"name": "empty", "emptyDir": {}}]);
    pods.create(web).await;
    let ready = pods.wait("web", is_ready).await;

    let address = ready["status"]["podIP"].as_str().expect("an address");
    assert_eq!(support::page(address, 8000, "/page").await, "content of a ConfigMap");
    assert!(!Path::new("/scripts").exists(), "mounts are visible to the container only");

    let mut client = pod("client", &format!("wget -q -O - http://{address}:8000/page"), json!({}));
    client["spec"]["nodeName"] = "node-2".into();
    pods.create(client).await;
    pods.wait("client", |pod| pod["status"]["phase"] == "Succeeded").await;
    let fetched = pods.0.logs("client", &LogParams::default()).await.expect("a log");
    assert_eq!(fetched, "content of a ConfigMap", "Pods of different nodes reach each other");

    let last = LogParams { tail_lines: Some(1), ..LogParams::default() };
    assert!(pods.0.logs("web", &last).await.expect("a log").contains("response:200"), "requests are logged last");
    let all = pods.0.logs("web", &LogParams::default()).await.expect("a log");
    assert!(all.starts_with("hello from $(NAME)\nsecond\n"), "{all}");

    let proxy = |path: &str| format!("/api/v1/nodes/node-1/proxy/{path}");
    let summary: Value = serde_json::from_str(&get(&cluster, &proxy("stats/summary")).await).expect("JSON");
    assert_eq!(summary["node"]["nodeName"], "node-1");
    assert_eq!(summary["pods"][0]["podRef"]["uid"], ready["metadata"]["uid"]);
    let container = &summary["pods"][0]["containers"][0];
    assert!(container["cpu"]["usageCoreNanoSeconds"].as_u64() > Some(100_000), "{summary}");
    assert!((1 << 12..128 << 20).contains(&container["memory"]["workingSetBytes"].as_u64().expect("bytes")));
    let metrics = get(&cluster, &proxy("metrics/cadvisor")).await;
    for name in ["container_cpu_cfs_throttled_seconds_total", "container_oom_events_total"] {
        let mut series = metrics.lines().filter(|line| line.starts_with(name));
        assert!(series.any(|line| line.contains("container=\"main\"") && line.contains("pod=\"web\"")), "{metrics}");
    }
    let config: Value = serde_json::from_str(&get(&cluster, &proxy("configz")).await).expect("JSON");
    assert_eq!(config["kubeletconfig"]["cpuManagerPolicy"], "none");

    let pid = node.pid("web", "main").await;
    pods.delete("web").await;
    pods.wait_until_gone("web").await;
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "its process is gone");
}

#[tokio::test]
async fn failures_are_reported() {
    let Some(cluster) = Cluster::start().await else { return };
    let node = Node::start(&cluster, NodeOptions::new("node-1")).await;
    let limits = json!({"limits": [{"type": "Container", "default": {"ephemeral-storage": "16Mi"}}]});
    let limits = json!({"metadata": {"name": "small"}, "spec": limits});
    let ranges: Api<LimitRange> = Api::namespaced(cluster.client(), "default");
    ranges.create(&PostParams::default(), &serde_json::from_value(limits).expect("limits")).await.expect("created");
    let pods = Pods::of(&cluster);

    let grow = json!({"resources": {"limits": {"memory": "32Mi"}}});
    pods.create(pod("greedy", "exec tail /dev/zero", grow)).await;
    pods.create(pod("missing", "true", json!({"image": "nowhere/nothing:1"}))).await;
    pods.create(pod("throttled", "while :; do :; done", json!({"resources": {"limits": {"cpu": "100m"}}}))).await;
    pods.create(pod("exits", "exit 3", json!({}))).await;
    let mut restarts = pod("restarts", "exit 1", json!({}));
    restarts["spec"]["restartPolicy"] = "Always".into();
    pods.create(restarts).await;

    let greedy = pods.wait("greedy", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(state(&greedy)["terminated"]["reason"], "OOMKilled");
    assert_eq!(state(&greedy)["terminated"]["exitCode"], 137);
    pods.wait("missing", |pod| state(pod)["waiting"]["reason"] == "ErrImagePull").await;
    pods.wait("missing", |pod| state(pod)["waiting"]["reason"] == "ImagePullBackOff").await;
    let exits = pods.wait("exits", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(state(&exits)["terminated"]["exitCode"], 3);
    let restarted = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_i64() >= Some(2);
    let restarts = pods.wait("restarts", restarted).await;
    assert_eq!(restarts["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 1);

    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    let events = events.list(&ListParams::default().fields("involvedObject.name=missing")).await.expect("events");
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("Failed")), "{events:?}");

    let metrics = get(&cluster, "/api/v1/nodes/node-1/proxy/metrics/cadvisor").await;
    let throttled = metrics.lines().find(|line| {
        line.starts_with("container_cpu_cfs_throttled_periods_total") && line.contains("pod=\"throttled\"")
    });
    assert!(!throttled.expect("a series").contains("} 0 "), "{throttled:?}");

    node.fill_disk("throttled", "main").await;
    let evicted = pods.wait("throttled", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(evicted["status"]["reason"], "Evicted");
}

#[tokio::test]
async fn containers_have_probes_messages_and_predecessors() {
    let Some(cluster) = Cluster::start().await else { return };
    let image =
        Image::new(&["/bin/sh", "-c"]).with_arguments(&["echo default"]).with_file("/usr/bin/true", "/opt/x/works");
    let _node = Node::start(&cluster, NodeOptions::new("node-1").with_image("default:1", image)).await;
    let pods = Pods::of(&cluster);

    let mut first = pod("first", "cat /shared/made; /opt/x/works && sleep 600", json!({"image": "default:1"}));
    first["spec"]["volumes"] = json!([{"name": "shared", "emptyDir": {}}]);
    let mounts = json!([{"name": "shared", "mountPath": "/shared"}]);
    first["spec"]["containers"][0]["volumeMounts"] = mounts.clone();
    let script = "echo before > /shared/made";
    first["spec"]["initContainers"] =
        json!([{"name": "init", "image": "busybox:1", "command": ["sh", "-c", script], "volumeMounts": mounts}]);
    first["spec"]["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["test", "-s", "/shared/made"]}});
    pods.create(first).await;
    let default = json!({"image": "default:1", "command": null});
    pods.create(pod("default", "", default)).await;
    let mut host = pod("host", "exec sleep 600", json!({}));
    host["spec"]["hostNetwork"] = true.into();
    pods.create(host).await;
    pods.create(pod("message", "echo why > /dev/termination-log; exit 4", json!({}))).await;
    let unhealthy =
        json!({"livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}});
    let mut unhealthy = pod("unhealthy", "exec sleep 600", unhealthy);
    unhealthy["spec"]["restartPolicy"] = "Always".into();
    pods.create(unhealthy).await;

    let ready = pods.wait("first", is_ready).await;
    assert_eq!(ready["status"]["initContainerStatuses"][0]["state"]["terminated"]["reason"], "Completed");
    assert_eq!(pods.0.logs("first", &LogParams::default()).await.expect("a log"), "before\n");
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut log = pods.0.log_stream("first", &follow).await.expect("a log").lines();
    assert_eq!(log.next().await.expect("a line").expect("text"), "before");
    pods.delete("first").await;
    let rest: Vec<_> = log.collect().await;
    assert!(rest.is_empty(), "the log ends with the container: {rest:?}");

    pods.wait("default", |pod| pod["status"]["phase"] == "Succeeded").await;
    assert_eq!(pods.0.logs("default", &LogParams::default()).await.expect("a log"), "default\n");
    let host = pods.wait("host", is_ready).await;
    assert_eq!(host["status"]["podIP"], host["status"]["hostIP"]);
    let message = pods.wait("message", |pod| pod["status"]["phase"] == "Failed").await;
    assert_eq!(state(&message)["terminated"]["message"], "why\n");
    let restarted = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_i64() >= Some(1);
    pods.wait("unhealthy", restarted).await;
}

#[tokio::test]
async fn users_may_do_what_their_roles_say() {
    let Some(cluster) = Cluster::start().await else { return };
    let agent: Api<Pod> = Api::namespaced(support::client(&cluster.kubeconfig_for("agent")).await, "default");
    let refused = agent.list(&ListParams::default()).await.expect_err("no role");
    assert!(matches!(&refused, kube::Error::Api(status) if status.is_forbidden()), "{refused}");
    let binding = json!({
        "metadata": {"name": "agent"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "agent"}],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(cluster.client(), "default");
    let binding = serde_json::from_value(binding).expect("a binding");
    bindings.create(&PostParams::default(), &binding).await.expect("created");
    assert_eq!(agent.list(&ListParams::default()).await.expect("a role").items.len(), 0);

    let unknown = support::client(&cluster.kubeconfig_with_token("unknown")).await;
    let unknown: Api<Pod> = Api::namespaced(unknown, "default");
    unknown.list(&ListParams::default()).await.expect_err("no such token");
}

#[tokio::test]
async fn pods_outlive_the_api_server_but_not_their_node() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let mut node = Node::start(&cluster, NodeOptions::new("node-1")).await;
    let pods = Pods::of(&cluster);
    pods.create(pod("steady", "exec sleep 600", json!({}))).await;
    let before = pods.wait("steady", is_ready).await;
    let pid = node.pid("steady", "main").await;

    cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(2)).await;
    pods.0.get("steady").await.expect_err("nobody answers");
    cluster.start_api_server().await;
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "it still runs");
    let after = pods.wait("steady", is_ready).await;
    assert_eq!(after["status"]["containerStatuses"], before["status"]["containerStatuses"]);
    pods.create(pod("later", "exit 0", json!({}))).await;
    pods.wait("later", |pod| pod["status"]["phase"] == "Succeeded").await;

    node.kill();
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it is killed");
    let nodes: Api<v1::Node> = Api::all(cluster.client());
    let is_unknown = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "Unknown")
    };
    support::wait(&nodes, "node-1", is_unknown).await;
}

#[tokio::test]
async fn a_job_completes_and_nothing_is_left() {
    let Some(cluster) = Cluster::start().await else { return };
    let start = async |name| Node::start(&cluster, NodeOptions::new(name)).await;
    let nodes = [start("node-1").await, start("node-2").await];
    let template = pod("unused", "echo $JOB_COMPLETION_INDEX; sleep 1", json!({}));
    let job = json!({
        "metadata": {"name": "three"},
        "spec": {
            "completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimit": 0,
            "template": {"spec": template["spec"]},
        },
    });
    let jobs: Api<Job> = Api::namespaced(cluster.client(), "default");
    jobs.create(&PostParams::default(), &serde_json::from_value(job).expect("a Job")).await.expect("created");
    let done = support::wait(&jobs, "three", |job| job["status"]["succeeded"] == 3).await;
    assert_eq!(done["status"]["completedIndexes"], "0-2");
    let pods = Pods::of(&cluster);
    let mut logs = Vec::new();
    for pod in pods.0.list(&ListParams::default()).await.expect("Pods") {
        logs.push(pods.0.logs(&pod.metadata.name.expect("a name"), &LogParams::default()).await.expect("a log"));
    }
    logs.sort();
    assert_eq!(logs, ["0\n", "1\n", "2\n"]);

    pods.create(pod("left", "sleep 600 & exec sleep 600", json!({}))).await;
    pods.wait("left", is_ready).await;
    let folder = cluster.folder().to_owned();
    let subnet = nodes[0].address().octets()[2];
    let devices = support::devices(subnet);
    assert!(!devices.is_empty());
    drop(cluster);
    drop(nodes);
    // The kernel removes network namespaces a moment after their last process.
    for _ in 0..100 {
        if support::leftovers(&folder, subnet, &devices).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(support::leftovers(&folder, subnet, &devices), Vec::<String>::new());
}
