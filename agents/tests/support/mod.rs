//! Shared by the tests of runs: a bench with the unruly target, jobs, and checks for leftovers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_agent::engine::Wrk;
use brewbench_agent::engine::k6::K6;
use brewbench_agent::engine::native::Native;
use brewbench_agent::host::idle_wait::IdleWait;
use brewbench_agent::run::context::RunContext;
use brewbench_agent::sandbox::{CGROUP_ROOT, Sandbox};
use brewbench_testing::{public_copy, public_folder, skip};
use brewbench_wire::RunId;
use brewbench_wire::job::{Job, Role, Size};
use brewbench_wire::load::{Closed, Form, Load};
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::scenario::Scenario;

pub mod web;

pub const SCRIPT: &str = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/'); }";

/// A bench whose targets are named after the manners of the unruly target.
pub struct Bench {
    pub work: RunContext,
    pub agent: String,
    program: PathBuf,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// Creates a bench; `None`, with a printed reason, if there is no k6.
    pub async fn new(test: &str) -> Option<Self> {
        let agent = format!("test {test} {}", std::process::id());
        let sandbox = Sandbox::detect(Path::new(CGROUP_ROOT), &agent);
        Self::with(sandbox, agent).await
    }

    /// Creates a bench without control groups.
    pub async fn unlimited(test: &str) -> Option<Self> {
        let agent = format!("test {test} {}", std::process::id());
        Self::with(Sandbox::none(&agent), agent).await
    }

    async fn with(sandbox: Sandbox, agent: String) -> Option<Self> {
        match K6::find(None).await {
            Ok(k6) => {
                let mut bench = Self::with_k6(sandbox, agent, k6);
                bench.work.engines.wrk = Wrk::find().await;
                Some(bench)
            }
            Err(reason) => {
                skip(&reason.to_string());
                None
            }
        }
    }

    /// Creates a bench with a given k6.
    pub fn with_k6(sandbox: Sandbox, agent: String, k6: K6) -> Self {
        let folder = public_folder();
        let (targets, work_folder) = (folder.path().join("targets"), folder.path().join("work"));
        for folder in [&targets, &work_folder] {
            std::fs::create_dir(folder).expect("a folder");
        }
        let work = RunContext::new(sandbox, k6, targets, work_folder);
        // These tests do not depend on an idle machine.
        let idle_wait = IdleWait { longest: Duration::ZERO, ..work.idle_wait };
        let mut work = RunContext { idle_wait, ..work };
        work.engines.native = Some(Native { program: built("brewbench-load"), arguments: Vec::new() });
        // A profiler names a program by its file, and one restarts itself: neither is possible below a private folder.
        let program = public_copy(&unruly(), folder.path());
        Self { work, agent, program, _folder: folder }
    }

    /// Writes a manifest for the unruly target; `tables` are appended to it.
    pub fn offer(&self, manner: &str, tables: &str) {
        self.offer_at(manner, "{port}", tables);
    }

    /// Writes a manifest with the given listen argument.
    pub fn offer_at(&self, manner: &str, listen: &str, tables: &str) {
        let text = format!(
            "name = \"{manner}\"\nversion = \"1\"\ncommand = [\"{}\", \"{listen}\", \"{manner}\"]\n\
             [ready]\npath = \"/\"\n{tables}",
            self.program.display()
        );
        std::fs::write(self.work.targets.join(format!("{manner}.toml")), text).expect("a manifest");
    }

    /// Asserts that nothing of the run or of this agent is left on the machine.
    pub fn assert_clean(&self, run: RunId) {
        let processes = processes_with(&run.to_string());
        assert!(processes.is_empty(), "processes {processes:?} are left");
        let groups = groups_of(&self.agent);
        assert!(groups.is_empty(), "groups {groups:?} are left");
        let folders: Vec<_> = std::fs::read_dir(&self.work.work_folder).expect("the work folder").collect();
        assert!(folders.is_empty(), "folders {folders:?} are left");
    }

    /// Whether memory can be limited; prints a message if not.
    pub fn limits_memory(&self) -> bool {
        let limits = self.work.sandbox.mechanisms().memory.as_str() != "none";
        if !limits {
            skip("memory can't be limited here");
        }
        limits
    }
}

/// Returns the example, which cargo builds next to the tests.
pub fn unruly() -> PathBuf {
    built("examples/unruly")
}

/// Returns a program that cargo builds with all tests, by its path in the folder of the profile.
pub fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("own path");
    let profile = own.ancestors().nth(2).expect("target/profile/deps/test");
    let path = profile.join(name);
    assert!(path.exists(), "{} is missing: cargo build --workspace --bins --examples", path.display());
    path
}

/// A job with one virtual user for one second, after 200 ms of warm-up.
pub fn job(target: &str) -> Job {
    Job {
        experiment: None,
        targets: Vec::new(),
        run: RunId::now(),
        scenario: scenario(SCRIPT),
        role: Role::Alone,
        partner: None,
        spec: RunSpec {
            target: target.to_owned(),
            size: Some(Size { name: "1 vCPU / 64 MiB".to_owned(), vcpus: 1.0, memory_bytes: 64 << 20, replicas: 1 }),
            load: Some(vus(1, 1000)),
            warm_up_s: Some(0.2),
            ..RunSpec::default()
        },
    }
}

/// A constant number of virtual users.
pub fn vus(level: u32, duration_ms: u64) -> Load {
    Load::Closed(Closed::new(Form::Constant { level, duration_ms }).expect("a load"))
}

pub fn scenario(script: &str) -> Scenario {
    Scenario::of_script("test", script)
}

/// Returns the other processes whose environment contains a text.
pub fn processes_with(text: &str) -> Vec<i32> {
    let contains = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(contains).collect()
}

/// Whether a folder is not on tmpfs, whose files are shared memory; prints a message if it is.
pub fn is_on_disk(folder: &Path) -> bool {
    let is_on_disk = rustix::fs::statfs(folder).is_ok_and(|found| found.f_type != 0x0102_1994);
    if !is_on_disk {
        skip("files are kept in memory here");
    }
    is_on_disk
}

/// Returns the folders of an agent's control groups.
pub fn groups_of(agent: &str) -> Vec<PathBuf> {
    let name = format!("brewbench-{}", agent.replace(' ', "=20"));
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(CGROUP_ROOT)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_str() == Some(&name) {
                    found.push(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found
}
