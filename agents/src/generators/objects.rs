//! The objects of one round of load beside its files: a Job for each generator, or one `TestRun`. Pure.
//!
//! Both ways name Jobs and Pods alike, with k6-operator's scheme: the Pods of generator `n` belong to the Job `NAME-n`.

use brewbench_wire::job::Segment;
use serde_json::{Map, Value, json};

use super::files::{FOLDER, Files};
use super::manifest::Generators;
use super::names::Names;
use crate::engine::remote::{self, ARCHIVE, PORT};

/// Label of the Pods of a round: its name.
pub const LOAD: &str = "brewbench.dev/load";

/// The variable with the name of a Pod's Job, by which the agent tells its generators apart.
pub const JOB_VARIABLE: &str = "BREWBENCH_JOB";

/// What the generators of a round have in common.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a> {
    /// Environment variables of k6, in this order.
    pub environment: &'a [(String, String)],
    /// The scenario.
    pub files: &'a Files,
    /// What the agent's owner allows.
    pub generators: &'a Generators,
    /// Name and labels of the round.
    pub names: &'a Names,
}

/// Returns the Job of a generator. Kubernetes ends it after this time, even without the agent.
pub fn job(shared: Shared<'_>, segment: Segment, longest_s: u64) -> Value {
    let Shared { environment, files, generators, names } = shared;
    let container = json!({
        "name": "k6", "image": generators.image, "command": remote::command(FOLDER, segment), "env": variables(environment),
        "resources": generators.resources(), "securityContext": Generators::container_security(),
        "ports": [{"containerPort": PORT}], "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": Files::mounts(),
    });
    let init = files.init_container(generators).map(|mut init| {
        init["securityContext"] = Generators::container_security();
        init["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
        init
    });
    let mut spec = generators.scheduling();
    let own = json!({
        "restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 1, "securityContext": Generators::pod_security(), "containers": [container],
        "initContainers": Vec::from_iter(init), "volumes": files.volumes(names),
    });
    merge(&mut spec, own);
    let metadata = names.metadata_for(&names.job(segment.index));
    let labels = metadata["labels"].clone();
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": longest_s,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

/// Returns the `TestRun` of all generators. Its runners get what own Jobs get; k6-operator adds segments and the pause.
pub fn test_run(shared: Shared<'_>, count: u32) -> Value {
    let Shared { environment, files, generators, names } = shared;
    let mut runner = generators.scheduling();
    let own = json!({
        "image": generators.image, "env": variables(environment), "resources": generators.resources(),
        "metadata": {"labels": names.metadata["labels"]}, "automountServiceAccountToken": "false",
        "securityContext": Generators::pod_security(), "containerSecurityContext": Generators::container_security(),
    });
    merge(&mut runner, own);
    // The Pod that starts them must be admitted by the namespace and tolerate the taints of its nodes, too.
    let mut starter = generators.scheduling();
    let own = json!({
        "metadata": {"labels": names.metadata["labels"]}, "automountServiceAccountToken": "false",
        "securityContext": Generators::pod_security(), "containerSecurityContext": Generators::container_security(),
    });
    merge(&mut starter, own);
    let script = if files.is_whole() {
        json!({"configMap": {"name": names.name, "file": ARCHIVE}})
    } else {
        let parts = json!({
            "initContainers": Vec::from_iter(files.init_container(generators)), "volumes": files.volumes(names),
            "volumeMounts": Files::mounts(),
        });
        merge(&mut runner, parts);
        json!({"localFile": format!("{FOLDER}/{ARCHIVE}")})
    };
    json!({
        "apiVersion": super::operator::API_VERSION, "kind": "TestRun", "metadata": names.metadata_for(&names.name),
        "spec": {
            "parallelism": count, "quiet": "true", "script": script,
            "initializer": {"disabled": true}, "runner": runner, "starter": starter,
        },
    })
}

fn variables(environment: &[(String, String)]) -> Vec<Value> {
    let job = json!({"name": JOB_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['job-name']"}}});
    let own = environment.iter().map(|(name, value)| json!({"name": name, "value": value}));
    std::iter::once(job).chain(own).collect()
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend::<Map<String, Value>>(from);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;

    use super::*;

    fn names() -> Names {
        Names { name: "brewbench-1-m".to_owned(), metadata: json!({"labels": {LOAD: "brewbench-1-m"}}) }
    }

    /// Builds a Job and a `TestRun` of an archive of this size.
    fn built(bytes: usize) -> [Value; 2] {
        let files = Files::pack(ARCHIVE, &vec![0xff; bytes]);
        let environment = [("A".to_owned(), "$(BREWBENCH_JOB)".to_owned())];
        let (generators, names) = (Generators::parse("vcpus = 0.5", "1.8.1").expect("a file"), names());
        let shared = Shared { environment: &environment, files: &files, generators: &generators, names: &names };
        [job(shared, Segment { index: 1, of: 2 }, 60), test_run(shared, 2)]
    }

    #[test]
    fn jobs_and_test_runs_have_the_same_names_and_environment() {
        let [job, run] = built(2);
        assert_eq!(job["metadata"]["name"], "brewbench-1-m-2");
        let env = job["spec"]["template"]["spec"]["containers"][0]["env"].clone();
        assert_eq!(env[0]["name"], JOB_VARIABLE, "later variables refer to it");
        serde_json::from_value::<Job>(job).expect("a Job");
        assert_eq!(run["spec"]["runner"]["env"], env);
        assert_eq!(run["spec"]["runner"]["metadata"]["labels"], json!({LOAD: "brewbench-1-m"}));
        assert_eq!(run["spec"]["script"]["configMap"], json!({"name": "brewbench-1-m", "file": ARCHIVE}));
        let starter = &run["spec"]["starter"];
        assert_eq!(starter["containerSecurityContext"], run["spec"]["runner"]["containerSecurityContext"]);
    }

    #[test]
    fn jobs_and_test_runs_put_a_large_scenario_together_alike() {
        let [job, run] = built(2 << 20);
        let (pod, runner) = (&job["spec"]["template"]["spec"], &run["spec"]["runner"]);
        assert_eq!(pod["volumes"], runner["volumes"]);
        assert_eq!(pod["containers"][0]["volumeMounts"], runner["volumeMounts"]);
        assert_eq!(pod["initContainers"][0]["command"], runner["initContainers"][0]["command"]);
        assert_eq!(run["spec"]["script"], json!({"localFile": format!("/test/{ARCHIVE}")}));
        serde_json::from_value::<Job>(job).expect("a Job");
    }
}
