//! The whole way, as a user goes it with the command line: server, agent, a program and its Pod in one experiment.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use brewbench_agent::engine::k6::K6;
use brewbench_kubernetes_testing::{Cluster, Image, Node, NodeOptions};
use brewbench_testing::skip;
use serde_json::Value;

/// The folder of built programs.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    own.ancestors().nth(2).expect("target/profile/deps/test").to_owned()
}

/// A server with an agent in its process.
struct Site {
    process: Child,
    url: String,
    token: String,
}

impl Site {
    fn start(data: &Path, manifests: &Path, kubeconfig: &Path) -> Self {
        let generators = data.join("generators.toml");
        fs::write(&generators, "image = \"k6:1\"\nvcpus = 0.2\nmemory_mib = 256\nmost = 4\n").expect("a file");
        let program = built().join("brewbench");
        let mut command = Command::new(&program);
        command.args(["serve", "--local-agent", "--kubernetes", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        command.arg("--manifests").arg(manifests).env("KUBECONFIG", kubeconfig).env("BREWBENCH_IDLE_TIMEOUT", "0s");
        command.arg("--generators").arg(generators);
        let mut process = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("a server");
        let mut lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let begin = "brewbench listens on ";
        let address = lines.find_map(|line| {
            let line = line.expect("a line");
            let (_, rest) = line.split_once(begin)?;
            Some(rest.split_whitespace().next()?.trim_end_matches(['.', ',']).to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://{}/", address.expect("an address"));
        let token = Command::new(&program)
            .args(["token", "new", "test", "--scope", "submit", "--data"])
            .arg(data)
            .output()
            .expect("a token");
        let printed = String::from_utf8_lossy(&token.stdout).into_owned();
        let found = printed.split_whitespace().find(|word| word.starts_with("bbt_"));
        let token = found.unwrap_or_else(|| panic!("a token: {token:?}")).to_owned();
        Self { process, url, token }
    }

    /// Runs a command; returns its exit status and what it prints.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(built().join("brewbench"));
        command.args(arguments).env("BREWBENCH_URL", &self.url).env("BREWBENCH_TOKEN", &self.token);
        let output = command.env("HOME", "/nonexistent").output().expect("a command");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (code, text) = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?} ({code:?}): {error}: {text}"))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_program_and_its_pod_are_compared() {
    let Some(cluster) = Cluster::start().await else { return };
    let server = built().join("rust-hyper");
    if !server.exists() || !built().join("brewbench").exists() {
        return skip("not built: cargo build --workspace");
    }
    let listens = ["--listen", "0.0.0.0:8080"];
    let image = Image::new(&["/usr/bin/rust-hyper"]).with_arguments(&listens).with_file(&server, "/usr/bin/rust-hyper");
    let k6 = K6::find(None).await.expect("k6").path().to_owned();
    let k6 = Image::new(&["k6"]).with_file(k6, "/usr/bin/k6");
    let options = NodeOptions::new("node-1").with_image("rust-hyper:1", image).with_image("k6:1", k6);
    let _node = Node::start(&cluster, options).await;
    let (data, manifests) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let checks = "[ready]\npath = \"/health\"\n[verify]\npath = \"/hash\"\ncontains = \"hash\"\n";
    let command = format!("command = [{:?}, \"--listen\", \"{{host}}:{{port}}\"]\n", server.display().to_string());
    let pod = "[kubernetes]\nimage = \"rust-hyper:1\"\nport = 8080\n";
    for (name, provided) in [("program", command.as_str()), ("pod", pod)] {
        let text = format!("name = \"{name}\"\nversion = \"1\"\n{provided}{checks}");
        fs::write(manifests.path().join(format!("{name}.toml")), text).expect("a manifest");
    }
    let kubeconfig = cluster.kubeconfig_for("admin");
    let site = tokio::task::spawn_blocking(move || {
        let site = Site::start(data.path(), manifests.path(), &kubeconfig);
        compare(&site);
        distribute(&site);
        (site, data, manifests)
    });
    let _site = site.await.expect("a comparison");
}

/// With `BREWBENCH_REPORT`, measures long enough for figures, and writes the report into that folder.
fn compare(site: &Site) {
    let targets = (0..100).find_map(|_| {
        let (_, text) = site.run(&["target", "list"]);
        if text.contains("kubernetes") && text.contains("program") {
            return Some(text);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        None
    });
    assert!(targets.is_some(), "the agent offers both");
    let report = std::env::var_os("BREWBENCH_REPORT").map(PathBuf::from);
    let (repeat, load) = match report {
        Some(_) => (10, ["--rate", "200", "--duration", "8s", "--warm-up", "3s"]),
        None => (3, ["--vus", "4", "--duration", "3s", "--warm-up", "1s"]),
    };
    let plan = ["run", "new", "--target", "program", "--target", "pod", "--size", "0.5/128MiB", "--scenario", "hash"];
    let (code, text) = site.run(&[&plan[..], &load, &["--repeat", &repeat.to_string(), "--wait"]].concat());
    assert!(matches!(code, Some(0 | 3)), "{text}");
    let runs = site.json(&["run", "list"]);
    let runs = runs["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2 * repeat);
    for run in runs {
        assert_eq!(run["phase"], "finished", "{run}");
        assert!(run["rps"].as_f64() > Some(10.0) && run["cpu_ms_per_request"].as_f64() > Some(0.0), "{run}");
    }
    let pods: Vec<&Value> = runs.iter().filter(|run| run["target"] == "pod").collect();
    assert_eq!(pods[0]["target_kind"], "kubernetes");
    assert_eq!(pods[0]["enforced"]["cpu"], "pod");
    let reasons = pods[0]["reasons"].to_string();
    assert!(reasons.contains("shares_node"), "{reasons}");
    // They differ in more than the target, which is said and not compared silently.
    let experiment = runs[0]["experiment"].as_str().expect("an experiment");
    let comparison = site.json(&["compare", "--experiment", experiment]);
    let confounders = comparison["rows"][0]["confounders"].to_string();
    assert!(confounders.contains("kubernetes") && confounders.contains("process"), "{confounders}");
    if let Some(folder) = report {
        let file = folder.join("kubernetes.md").display().to_string();
        let how = ["--allow-confounders", "--format", "markdown", "--output", &file];
        let (code, text) =
            site.run(&[&["report", "--experiment", experiment, "--baseline", "program"][..], &how].concat());
        assert_eq!(code, Some(0), "{text}");
    }
}

/// The same target, loaded by one k6 and by three Pods.
fn distribute(site: &Site) {
    let load = |target, generators: &[&str]| {
        let plan = ["run", "new", "--target", target, "--size", "0.5/128MiB", "--scenario", "hash", "--vus", "6"];
        let rest = ["--duration", "4s", "--warm-up", "500ms", "--repeat", "1", "--retries", "0", "--wait"];
        site.run(&[&plan[..], &rest, generators].concat())
    };
    let (_, text) = load("pod", &["--load-on", "kubernetes", "--generators", "5"]);
    assert!(text.contains("cluster_generators: ") && text.contains("allows 4 generators at most"), "{text}");
    let (_, text) = load("program", &["--load-on", "kubernetes", "--generators", "3"]);
    assert!(text.contains("runs \"program\" on its own machine"), "{text}");
    let (code, text) = load("pod", &["--load-on", "kubernetes", "--generators", "3"]);
    assert!(matches!(code, Some(0 | 3)), "{text}");
    let newest = site.json(&["run", "list"])["runs"][0].clone();
    assert_eq!(newest["cluster_generators"], 3, "{newest}");
    let id = newest["id"].as_str().expect("an id");
    let shown = site.json(&["run", "show", id]);
    let generators = shown["generators"].as_array().expect("generators");
    let requests: u64 = generators.iter().map(|one| one["requests"].as_u64().expect("a count")).sum();
    assert_eq!(newest["requests"], requests, "the whole is the sum of its parts");
    // Percentiles come from the merged histogram, whose buckets are 9 % wide.
    for percentile in ["p50_ms", "p99_ms"] {
        let own = || generators.iter().map(|one| one[percentile].as_f64().expect("a percentile"));
        let (low, high) = (own().fold(f64::MAX, f64::min) / 1.091, own().fold(0.0, f64::max) * 1.091);
        let whole = newest[percentile].as_f64().expect("a percentile");
        assert!((low..=high).contains(&whole), "{percentile}: {whole} of {low} to {high}");
    }
}
