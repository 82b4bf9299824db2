//! A server, a real agent and a real k6: staged loads, and scripts that k6 checks.
//!
//! Without k6 or the bundled targets, the tests print the reason and pass.

use serde_json::{Value, json};

use crate::{
    harness::{
        Actor,
        program::{Running, Tools},
        submit::{plan_with, submit},
    },
    processes::{serve_with_agent, until, user_of},
};

/// A server with a local agent that runs any script, and a user who submits.
pub struct Site {
    program: Running,
    pub user: Actor,
    _data: tempfile::TempDir,
}

impl Site {
    pub async fn start() -> Option<Self> {
        let tools = Tools::find()?;
        let data = tempfile::tempdir().expect("a folder");
        let mut command = serve_with_agent(data.path(), &tools);
        command.arg("--any-scenario");
        let program = Running::start(command);
        let user = user_of(&program, data.path()).await;
        until(&program, "the agent", async || {
            let list = user.get("/api/v1/agents").await.ok().json();
            (list["agents"][0]["connected"] == true).then_some(())
        })
        .await;
        Some(Self { program, user, _data: data })
    }

    /// Measures a scenario.
    pub async fn measure(&self, load: &Value, scenario: &str) -> Value {
        let plan = json!({"targets": ["rust-hyper"], "scenario": scenario, "load": load, "warm_up_s": 0.2});
        let plan = plan_with(&plan);
        let run = submit(&self.user, &plan).await.1.remove(0);
        until(&self.program, "the end of the run", async || {
            Some(self.user.run(&run).await).filter(|run| !run["finished_at_ms"].is_null())
        })
        .await
    }
}

#[tokio::test]
async fn staged_rates_run_the_iterations_of_their_shape_and_staged_vus_finish() {
    let Some(site) = Site::start().await else { return };
    // 10 + 20 + 5, few enough for every machine, or they are counted as dropped. k6 rounds by one.
    let stages =
        json!([{"duration_s": 1, "target": 20}, {"duration_s": 1, "target": 20}, {"duration_s": 0.5, "target": 0}]);
    let run = site.measure(&json!({"kind": "rate_stages", "stages": stages}), "hash").await;
    assert_eq!(run["phase"], "finished", "{run}");
    let (done, dropped) = (run["iterations"].as_u64().expect("a count"), run["dropped_iterations"].as_u64());
    assert!(done <= 36 && (34..=36).contains(&(done + dropped.unwrap_or(0))), "{done} done, {dropped:?} dropped");
    assert_eq!((&run["duration_s"], &run["load"]["max_vus"], &run["vus"]), (&json!(2.5), &json!(10), &json!(null)));
    let reasons = run["reasons"].to_string();
    assert_eq!(reasons.contains("iterations_dropped"), dropped.is_some_and(|dropped| dropped > 0), "{reasons}");

    let stages = json!([{"duration_s": 0.5, "target": 3}, {"duration_s": 0.5, "target": 0}]);
    let run = site.measure(&json!({"kind": "vus_stages", "stages": stages}), "hash").await;
    assert!(run["phase"] == "finished" && run["iterations"].as_u64().is_some_and(|done| done > 0), "{run}");
}

#[tokio::test]
async fn the_k6_of_an_agent_checks_a_script_before_it_is_stored() {
    let Some(site) = Site::start().await else { return };
    let store = async |script: &str| {
        let scenario =
            json!({"name": "mine", "script": script, "files": {"paths.json": "[1]"}, "defaults": {"N": "1"}});
        site.user.post("/api/v1/scenarios", &scenario).await
    };
    let nosy = "export default open('/etc/passwd')";
    let colourful = "throw new Error('\\u001b[31mred'); export default () => {}";
    for (script, words) in [
        ("export default function () {", "Unexpected end of input"),
        ("export const options = { vus: 'many' }; export default () => {}", "many"),
        (nosy, "open /etc/passwd: file does not exist"),
        (colourful, "Error: red"),
    ] {
        let refused = store(script).await.refused(422);
        assert!(refused.starts_with("script: k6 failed: ") && refused.contains(words), "{refused}");
    }
    site.user.get("/api/v1/scenarios/mine").await.refused(404);
    let good = "const paths = JSON.parse(open('./paths.json')); if (__ENV.N !== '1' || __ENV.PATH) throw 1;
        export default function () {}";
    let stored = store(good).await.ok().json();
    assert_eq!((&stored["check"]["agent"], &stored["check"]["fault"]), (&json!("local"), &json!(null)), "{stored}");
    assert!(
        stored["check"]["engine"]["version"].as_str().is_some_and(|version| version.starts_with(['1', '2'])),
        "{stored}"
    );
}
