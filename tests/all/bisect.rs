//! `brewbench bisect`, with a real agent that builds the commits of a real repository.

use std::{fs, path::PathBuf, time::Duration};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    harness::{
        Actor,
        program::{Output, Running, Tools, brewbench},
        repository::Repository,
    },
    processes::{serve_with_agent, until, user_of},
};

/// Longest search.
const LIMIT: Duration = Duration::from_mins(10);

/// A server with an agent that builds a repository.
pub struct BuiltSite {
    _program: Running,
    pub user: Actor,
    pub address: String,
    pub repository: Repository,
    folder: TempDir,
}

impl BuiltSite {
    /// The first commit takes `delay_ms`. Returns `None` if a program is missing that a real run needs.
    pub async fn start(delay_ms: f64) -> Option<Self> {
        let tools = Tools::find()?;
        let folder = brewbench_testing::public_folder();
        let path = |name: &str| folder.path().join(name);
        let repository = Repository::new(&path("api"), delay_ms);
        fs::create_dir(path("manifests")).expect("a folder");
        fs::write(path("manifests/api.toml"), repository.manifest()).expect("a manifest");
        let mut serve = serve_with_agent(&path("data"), &tools);
        serve.env("BREWBENCH_MANIFESTS", path("manifests"));
        let program = Running::start(serve);
        let user = user_of(&program, &path("data")).await;
        until(&program, "the agent", async || {
            let list = user.get("/api/v1/agents").await.ok().json();
            (list["agents"][0]["connected"] == true).then_some(())
        })
        .await;
        let address = format!("http://{}/", program.wait_for("brewbench listens on ").await);
        Some(Self { _program: program, user, address, repository, folder })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn bisect(&self, good: &str, bad: &str, more: &[&str]) -> Output {
        let mut command = brewbench(&["bisect", "--target", "api", "--good", good, "--bad", bad, "--metric", "rps"]);
        command.args(["--worse", "50%", "--json"]).args(more).args(["--", "--size", "1/1GiB", "--scenario", "get"]);
        command.args(["--vus", "2", "--duration", "1s", "--warm-up", "0.2s", "--repeat", "6", "--accept-suspect"]);
        command.env("BREWBENCH_URL", &self.address).env("BREWBENCH_TOKEN", self.user.secret());
        Output::within(LIMIT, {
            command.current_dir(self.path("api"));
            command
        })
        .await
    }
}

#[tokio::test]
async fn the_commit_is_found_and_a_search_goes_on_where_it_ended() {
    let Some(site) = BuiltSite::start(10.0).await else { return };
    site.repository.git(&["tag", "good"]);
    for number in 1..=4 {
        site.repository.commit(&format!("Change {number}"), if number < 3 { 10.0 } else { 60.0 });
    }
    let found: Value = site.bisect("good", "main", &[]).await.json();
    assert_eq!(found["found"]["subject"], "Change 3", "{found}");
    let steps = found["steps"].as_array().expect("steps").len();
    assert!((3..=4).contains(&steps), "{found}");
    // Nothing is measured twice.
    let again = site.bisect("good", "main", &[]).await;
    assert!(!again.err.contains("queued"), "{}", again.err);
    assert_eq!(again.json(), found);

    let nothing = site.bisect("good", "good~0", &[]).await;
    assert!(nothing.refused(64).contains("are the same commit"));
    let equal = site.bisect("main~1", "main", &[]).await;
    assert_eq!((equal.code, equal.out.contains("\"found\": null")), (Some(1), true), "{}", equal.err);
}
