//! Attacks from inside the sandbox: by a target, by a script, and by an inspected script.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use brewbench_agent::engine::inspection::inspect;
use brewbench_agent::run::execute;
use brewbench_agent::sandbox::cage::Cage;
use brewbench_agent::sandbox::cage::support::Landlock;
use brewbench_agent::sandbox::cage::user::{self, Users};
use brewbench_agent::sandbox::process::{Plan, Process, find_program};
use brewbench_agent::sandbox::{CGROUP_ROOT, Group, ProgramRole, Sandbox};
use brewbench_testing::{public_folder, skip};
use brewbench_wire::RunId;
use brewbench_wire::job::Job;
use brewbench_wire::load::Load;
use brewbench_wire::messages::Finding;
use brewbench_wire::outcome::{Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::{Bench, job, scenario};

/// A folder with the agent's key next to the files a target may use.
struct Machine {
    folder: tempfile::TempDir,
    group: Group,
}

impl Machine {
    fn new(name: &str) -> Self {
        let folder = public_folder();
        for below in ["state", "targets", "home", "wide"] {
            std::fs::create_dir(folder.path().join(below)).expect("a folder");
        }
        for file in ["state/key", "targets/data", "wide/data"] {
            std::fs::write(folder.path().join(file), "hush\n").expect("a file");
        }
        std::fs::set_permissions(folder.path().join("state"), Permissions::from_mode(0o700)).expect("a private folder");
        for below in ["home", "wide"] {
            user::give(&folder.path().join(below), ProgramRole::Target).expect("given");
        }
        let agent = format!("test cage {name} {}", std::process::id());
        let group = Sandbox::detect(Path::new(CGROUP_ROOT), &agent).open(RunId::now(), ProgramRole::Target);
        Self { folder, group: group.expect("a group") }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Runs a shell script in the sandbox of a target and returns its output. `$1` is the folder.
    async fn run_shell(&self, script: &str) -> String {
        let program = find_program(Path::new("sh")).expect("a shell");
        let cage = Cage::target(&program, &self.path("targets"), &self.path("home"));
        let cage = cage.widened(&[], &[self.path("wide")]);
        self.run_in(cage, script).await
    }

    async fn run_in(&self, cage: Cage, script: &str) -> String {
        let plan = Plan {
            program: find_program(Path::new("sh")).expect("a shell"),
            arguments: vec!["-c".into(), script.into(), "sh".into(), self.folder.path().display().to_string()],
            environment: BTreeMap::new(),
            folder: self.path("targets"),
            cores: Vec::new(),
            cage,
        };
        let mut process = Process::start(&plan, &self.group).expect("a shell");
        process.wait().await.expect("an end");
        process.log().await
    }

    /// Asserts that a script fails for this reason.
    async fn assert_refused(&self, script: &str, reason: &str) {
        let output = self.run_shell(&format!("{script} && echo DONE")).await;
        assert!(output.contains(reason) && !output.contains("DONE"), "{script}: {output}");
    }
}

/// A private folder, such as root's home, above a target that everybody may read.
#[tokio::test]
async fn a_target_below_a_private_folder_starts_and_reads_its_own_folder() {
    let machine = Machine::new("private");
    let (private, folder) = (machine.path("private"), machine.path("private/app"));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::copy(find_program(Path::new("sh")).expect("a shell"), folder.join("server")).expect("a program");
    std::fs::write(folder.join("data"), "mine\n").expect("a file");
    std::fs::write(private.join("secret"), "hush\n").expect("a file");
    std::fs::set_permissions(&private, Permissions::from_mode(0o700)).expect("a private folder");
    let program = folder.join("server");
    let plan = Plan {
        arguments: vec!["-c".into(), "cat data; echo $0; cat ../secret".into()],
        environment: BTreeMap::new(),
        cores: Vec::new(),
        cage: Cage::target(&program, &folder, &machine.path("home")),
        program: program.clone(),
        folder,
    };
    let mut process = Process::start(&plan, &machine.group).expect("started");
    process.wait().await.expect("an end");
    let output = process.log().await;
    assert!(output.starts_with(&format!("mine\n{}\n", program.display())), "{output}");
    assert!(output.contains("ermission denied") && !output.contains("hush"), "{output}");
}

/// Whether the kernel has Landlock; without it these attacks succeed, and `doctor` warns about it.
fn has_landlock() -> bool {
    let has = Landlock::detect() != Landlock::Absent;
    if !has {
        skip("this kernel has no Landlock");
    }
    has
}

#[tokio::test]
async fn a_target_reads_and_writes_only_what_its_manifest_allows() {
    if !has_landlock() {
        return;
    }
    let machine = Machine::new("files");
    for refused in ["cat $1/state/key", "cat ../state/key", "ls $1/state", "cat /etc/shadow", "ls /home"] {
        machine.assert_refused(refused, "ermission denied").await;
    }
    for refused in
        ["echo x > $1/targets/evil.toml", "echo x > /tmp/brewbench-evil", "rm $1/targets/data", "mkdir /run/x"]
    {
        machine.assert_refused(refused, "ermission denied").await;
    }
    machine.assert_refused("ln $1/state/key $HOME/key", "ermission denied").await;
    // A symbolic link can be created, but not followed.
    machine.assert_refused("ln -s $1/state/key $HOME/link && cat $HOME/link", "ermission denied").await;
    let allowed = "cat data && cat $1/wide/data && echo own > $HOME/x && cat $TMPDIR/x && echo y > $1/wide/y && \
        echo > /dev/null && head -c 4 /dev/urandom > /dev/null && cat /proc/self/comm && echo DONE";
    let output = machine.run_shell(allowed).await;
    assert!(output.ends_with("hush\nhush\nown\ncat\nDONE\n"), "{output}");
}

#[tokio::test]
async fn a_target_cannot_leave_its_control_group() {
    if !has_landlock() {
        return;
    }
    let machine = Machine::new("groups");
    let folders = "for f in $(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs 2>/dev/null); do";
    let output = machine.run_shell(&format!("{folders} (echo 0 > $f) && echo LEFT $f; done; echo END")).await;
    assert!(!output.contains("LEFT") && output.ends_with("END\n"), "{output}");
    machine.assert_refused("mkdir /sys/fs/cgroup/brewbench-evil", "ermission denied").await;
    // `clone3` could start a process elsewhere; the filter makes it fail as not implemented.
    machine.assert_refused("unshare --net true", "not implemented").await;
}

#[tokio::test]
async fn a_target_has_no_capabilities_and_gains_none() {
    let machine = Machine::new("privileges");
    let status = machine.run_shell("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status").await;
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect(name).trim().to_owned();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(value(set), "0000000000000000", "{set} {status}");
    }
    assert_eq!((value("NoNewPrivs:"), value("Seccomp:")), ("1".to_owned(), "2".to_owned()));
    assert_eq!(machine.run_shell("ulimit -c").await, "0\n");
}

#[tokio::test]
async fn a_target_cannot_inspect_or_signal_the_agent() {
    let machine = Machine::new("agent");
    let variables = machine.run_shell("env").await;
    for line in variables.lines() {
        let (name, _) = line.split_once('=').expect("a variable");
        let expected =
            ["PATH", "HOME", "TMPDIR", "PWD", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "_"];
        let is_ours = name.starts_with("BREWBENCH_") && !name.contains("KEY") && !name.contains("TOKEN");
        assert!(is_ours || expected.contains(&name) || name.starts_with("LC_") || name == "SHLVL", "{line}");
    }
    if has_landlock() {
        machine.assert_refused("cat /proc/$PPID/environ", "ermission denied").await;
        machine.assert_refused("cat /proc/$PPID/mem", "ermission denied").await;
    }
    if matches!(Landlock::detect(), Landlock::Complete(_)) || Users::find().is_ok() {
        machine.assert_refused("kill -0 $PPID", "not permitted").await;
    }
}

#[tokio::test]
async fn a_program_without_a_network_gets_no_socket() {
    let machine = Machine::new("network");
    let program = find_program(Path::new("bash")).expect("bash");
    let cage = || Cage::target(&program, &machine.path("targets"), &machine.path("home"));
    let script = "exec bash -c ': < /dev/tcp/127.0.0.1/9'";
    let online = machine.run_in(cage(), script).await;
    assert!(online.contains("refused"), "{online}");
    let offline = machine.run_in(cage().without_network(), script).await;
    assert!(offline.contains("not implemented"), "{offline}");
}

/// Runs a script with its own load against a target.
async fn run(bench: &Bench, script: &str) -> Outcome {
    let job = Job {
        scenario: scenario(script),
        spec: RunSpec { load: Some(Load::Script), warm_up_s: Some(0.0), ..job("good").spec },
        ..job("good")
    };
    execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await
}

#[tokio::test]
async fn a_script_writes_only_to_its_own_folder() {
    if !has_landlock() {
        return;
    }
    let Some(bench) = Bench::new("script files").await else { return };
    bench.offer("good", "");
    let outside = tempfile::tempdir().expect("a folder");
    let targets = bench.work.targets.display().to_string();
    for path in [
        format!("{targets}/evil.toml"),
        format!("{}/evil", outside.path().display()),
        "../scenario/measured.tar".to_owned(),
        "../../evil".to_owned(),
        "../target/evil".to_owned(),
    ] {
        let script = format!(
            "import http from 'k6/http'; export const options = {{ vus: 1, iterations: 1 }};
             export default () => {{ http.get(__ENV.BASE_URL); }};
             export const handleSummary = () => ({{ {path:?}: 'evil', 'fine.txt': 'fine' }});"
        );
        let outcome = run(&bench, &script).await;
        assert!(
            outcome.generator_log.contains("permission denied"),
            "{path}: {:?} {}",
            outcome.ended,
            outcome.generator_log
        );
        assert!(
            outcome.summary.is_some(),
            "{path}: the summary is missing: {:?} {}",
            outcome.ended,
            outcome.generator_log
        );
    }
    assert!(!bench.work.targets.join("evil.toml").exists() && !outside.path().join("evil").exists());
    assert_eq!(std::fs::read_dir(&bench.work.work_folder).expect("a folder").count(), 0);
}

#[tokio::test]
async fn an_inspected_script_reads_only_its_own_files() {
    if !has_landlock() {
        return;
    }
    let Some(bench) = Bench::new("script reads").await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::write(&key, "hush-hush").expect("a file");
    let inspected =
        async |script: &str| inspect(Uuid::now_v7(), &scenario(script), &bench.work, &CancellationToken::new()).await;
    for path in [key.to_str().expect("a path"), "../../../key", "/etc/shadow", "/proc/self/environ", "/proc/1/cmdline"]
    {
        let finding = inspected(&format!("export default open({path:?});")).await;
        let Finding::Invalid { message } = finding else { panic!("{path}: {finding:?}") };
        assert!(!message.contains("hush") && !message.contains("BREWBENCH"), "{path}: {message}");
    }
    let finding = inspected("export default () => {};").await;
    assert!(matches!(finding, Finding::Valid(_)), "{finding:?}");
}

#[tokio::test]
async fn a_script_cannot_load_public_addresses_or_follow_redirects_there() {
    let Some(bench) = Bench::new("script reach").await else { return };
    bench.offer("good", "");
    let script = "import http from 'k6/http'; export const options = { vus: 1, iterations: 1 };
         export default () => {
           for (const url of ['http://192.0.2.7/', 'http://169.254.169.254/', 'http://[2001:db8::1]/']) {
             const answer = http.get(url, { timeout: '30s', redirects: 10 });
             console.log(url + ' ' + answer.error);
           }
         };";
    let outcome = run(&bench, script).await;
    assert!(matches!(outcome.ended, Ended::Finished), "{:?}", outcome.ended);
    let answers =
        outcome.generator_log.lines().filter(|line| line.contains("source=console") && line.contains("blacklisted"));
    assert_eq!(answers.count(), 3, "{}", outcome.generator_log);
}

#[tokio::test]
async fn a_script_loads_no_module_from_the_network() {
    let Some(bench) = Bench::new("script modules").await else { return };
    bench.offer("good", "");
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let at = listener.local_addr().expect("an address");
    // The source map is requested for the same module.
    let script = format!(
        "import http from 'k6/http'; export const options = {{ vus: 1, iterations: 1 }};
         let fault = ''; try {{ require('https://{at}/x.js'); }} catch (error) {{ fault = String(error); }}
         export default () => {{ http.get(__ENV.BASE_URL); console.log(fault); }};
         //# sourceMappingURL=https://{at}/x.js.map"
    );
    let outcome = run(&bench, &script).await;
    assert!(matches!(outcome.ended, Ended::Finished), "{:?}", outcome.ended);
    assert!(outcome.generator_log.contains("couldn't be retrieved"), "{}", outcome.generator_log);
    let asked = listener.accept().map(|(_, by)| by);
    assert!(asked.is_err(), "a module was requested by {asked:?}: {}", outcome.generator_log);

    let script = format!("import x from 'https://{at}/x.js'; export default x;");
    let Ended::Failed { reason, .. } = run(&bench, &script).await.ended else { panic!("a module was loaded") };
    assert!(
        reason.contains("script.js:1 imports https://") && reason.contains("no modules from the network"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_script_cannot_fill_the_disk() {
    let Some(bench) = Bench::new("script disk").await else { return };
    bench.offer("good", "");
    let script = "import http from 'k6/http'; export const options = { vus: 1, iterations: 1 };
         export default () => { http.get(__ENV.BASE_URL); };
         export const handleSummary = () => ({ 'large.txt': 'x'.repeat(80 << 20) });";
    let outcome = run(&bench, script).await;
    assert!(outcome.generator_log.contains("file too large"), "{:?} {}", outcome.ended, outcome.generator_log);
    assert!(outcome.summary.is_some(), "{:?}", outcome.ended);
}
