//! Attacks on files, sockets and processes of the agent's user, which Landlock does not cover: refused by other users
//! where the agent is privileged, else by a seccomp filter.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use brewbench_agent::sandbox::cage::Cage;
use brewbench_agent::sandbox::cage::user::{self, User, Users};
use brewbench_agent::sandbox::process::{Plan, Process, find_program};
use brewbench_agent::sandbox::{Group, ProgramRole, Sandbox};
use brewbench_testing::{public_copy, public_folder, skip};
use brewbench_wire::RunId;
use nix::unistd::Uid;

/// Prints for each attack whether it worked. `$d` is a folder of the agent's user, `$rival` a process of the other
/// side.
const PRELUDE: &str = r#"
    use Socket;
    ($d, $rival) = @ARGV;
    sub try { my ($name, $worked) = @_; print "$name: ", ($worked ? "WORKED" : "refused, $!"), "\n" }
    sub calls { my $name = shift; try($name, syscall(shift, @_) == 0) }
"#;

const ON_SOCKETS: &str = r#"
    socket(S, AF_UNIX, SOCK_STREAM, 0) && try("connect", connect(S, pack_sockaddr_un("$d/open/service")))
        or try("socket", 0);
"#;

const ON_FILES: &str = r#"
    for $file ("$d/open/file", "$d/state/key") {
        try("chmod $file", chmod(0666, $file));
        try("chown $file", chown(-1, $( + 0, $file));
        try("utime $file", utime(0, 0, $file));
    }
"#;

/// Numbers of x86-64; those above `$x32` are of its other interface.
const ON_FILES_BY_NUMBER: &str = r#"
    ($file, $x32, $none) = ("$d/open/file", 0x40000000, pack("Q4", 0, 0, 0, 0));
    ($name, $value) = ("user.x", "y");
    calls("chmod", 90, $file, 0666);
    calls("chmod, x32", $x32 | 90, $file, 0666);
    calls("lchown", 94, $file, -1, $( + 0);
    calls("fchmodat", 268, -100, $file, 0666);
    calls("fchmodat2", 452, -100, $file, 0666, 0);
    calls("fchownat", 260, -100, $file, -1, $( + 0, 0);
    calls("utimensat", 280, -100, $file, $none, 0);
    calls("utimensat, x32", $x32 | 280, -100, $file, $none, 0);
    calls("setxattr", 188, $file, $name, $value, 1, 0);
"#;

const ON_PROCESSES: &str = r#"
    try("setpriority", setpriority(0, $rival, 10));
    calls("sched_setscheduler", 144, $rival + 0, 3, pack("i", 0));
    calls("ioprio_set", 251, 1, $rival + 0, 3 << 13);
"#;

/// The filter can't refuse these to a program that may do so to its own threads and children.
const ON_PROCESSES_OF_OTHERS: &str = r#"
    calls("sched_setaffinity", 203, $rival + 0, 8, pack("Q", 1));
    try("kill", kill("STOP", $rival));
"#;

const ON_NAMESPACES: &str = r#"
    for $flag (0x10000000, 0x00020000, 0x20000000, 0x40000000) {
        $child = syscall(56, $flag | 17, 0, 0, 0, 0);
        exit if $child == 0;
        try(sprintf("clone %x", $flag), $child > 0);
    }
"#;

/// The files of an agent's user, and a process of the other side.
struct Machine {
    folder: tempfile::TempDir,
    group: Group,
    rival: Process,
    _service: UnixListener,
}

impl Machine {
    fn new() -> Self {
        let folder = public_folder();
        let path = |below: &str| folder.path().join(below);
        for below in ["state", "open", "home", "results"] {
            fs::create_dir(path(below)).expect("a folder");
        }
        fs::set_permissions(path("open"), Permissions::from_mode(0o755)).expect("an open folder");
        fs::set_permissions(path("state"), Permissions::from_mode(0o700)).expect("a private folder");
        for file in ["state/key", "open/file"] {
            fs::write(path(file), "hush").expect("a file");
            fs::set_permissions(path(file), Permissions::from_mode(0o640)).expect("a private file");
        }
        let service = UnixListener::bind(path("open/service")).expect("a socket");
        fs::set_permissions(path("open/service"), Permissions::from_mode(0o660)).expect("a private socket");
        let sandbox = Sandbox::none(&format!("test walls {}", std::process::id()));
        let group = sandbox.open(RunId::now(), ProgramRole::Target).expect("a group");
        user::give(&path("home"), ProgramRole::Target).expect("given");
        user::give(&path("results"), ProgramRole::Generator).expect("given");
        let sleep = find_program(Path::new("sleep")).expect("sleep");
        let cage = Cage::generator(&sleep, Path::new("/usr"), &path("results"), &path("results"));
        let rival = Process::start(&plan(sleep, &["600"], cage), &group).expect("sleep");
        Self { folder, group, rival, _service: service }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Runs attacks in a cage and returns a line for each.
    async fn attack(&self, cage: impl FnOnce(&Path) -> Cage, attacks: &[&str]) -> Vec<String> {
        let perl = PathBuf::from("/usr/bin/perl");
        let script = format!("{PRELUDE}{}", attacks.concat());
        let rival = self.rival.id().to_string();
        let plan =
            plan(perl.clone(), &["-e", &script, self.folder.path().to_str().expect("a path"), &rival], cage(&perl));
        let mut process = Process::start(&plan, &self.group).expect("perl");
        process.wait().await.expect("an end");
        process.log().await.lines().map(str::to_owned).collect()
    }

    /// Asserts that a target gets nowhere with any of these attacks, and that they work without a cage.
    async fn assert_refused(&self, attacks: &[&str]) {
        let target = |perl: &Path| Cage::target(perl, &self.path("open"), &self.path("home"));
        let caged = self.attack(target, attacks).await;
        let free = self.attack(|_| Cage::open(&self.path("home")), attacks).await;
        assert_eq!(caged.len(), free.len(), "{caged:#?} {free:#?}");
        assert!(!caged.is_empty() && caged.iter().all(|line| line.contains(": refused, ")), "{caged:#?}");
        for line in free.iter().filter(|line| !line.contains("x32")) {
            assert!(line.ends_with(": WORKED"), "it proves nothing that this is refused: {free:#?}");
        }
    }
}

fn plan(program: PathBuf, arguments: &[&str], cage: Cage) -> Plan {
    let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
    Plan { program, arguments, environment: BTreeMap::new(), folder: "/".into(), cores: Vec::new(), cage }
}

#[tokio::test]
async fn a_target_opens_no_socket_of_the_agents_user() {
    Machine::new().assert_refused(&[ON_SOCKETS]).await;
}

#[tokio::test]
async fn a_target_changes_no_metadata_of_the_agents_files() {
    Machine::new().assert_refused(&[ON_FILES]).await;
    if cfg!(target_arch = "x86_64") {
        Machine::new().assert_refused(&[ON_FILES_BY_NUMBER]).await;
    }
}

#[tokio::test]
async fn a_target_does_not_hold_back_the_load_generator() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the numbers of system calls are those of x86-64");
    }
    let machine = Machine::new();
    machine.assert_refused(&[ON_PROCESSES]).await;
    if Users::find().is_ok() {
        machine.assert_refused(&[ON_PROCESSES_OF_OTHERS]).await;
    }
}

#[tokio::test]
async fn a_target_enters_no_namespace_of_its_own() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the numbers of system calls are those of x86-64");
    }
    let machine = Machine::new();
    let target = |perl: &Path| Cage::target(perl, &machine.path("open"), &machine.path("home"));
    let lines = machine.attack(target, &[ON_NAMESPACES]).await;
    assert!(lines.len() == 4 && lines.iter().all(|line| line.contains("not implemented")), "{lines:#?}");
}

#[tokio::test]
async fn programs_of_both_sides_have_users_and_groups_of_their_own() {
    let Ok(users) = Users::find() else { return };
    assert_ne!(users.target, users.generator);
    let machine = Machine::new();
    let ids = "open(F, '/proc/self/status'); print grep { /^(Uid|Gid|Groups)/ } <F>; \
        open(O, '>', '/dev/stdout') && print O 'opened';";
    let target = |perl: &Path| Cage::target(perl, &machine.path("open"), &machine.path("home"));
    let lines = machine.attack(target, &[ids]).await;
    let number = User::for_role(ProgramRole::Target).expect("a user").uid();
    let four = format!("{number}\t{number}\t{number}\t{number}");
    let expected = [format!("Uid:\t{four}"), format!("Gid:\t{four}"), "Groups:\t ".to_owned(), "opened".to_owned()];
    assert_eq!(lines, expected, "no supplementary groups");
}

#[tokio::test]
async fn what_another_user_has_closed_is_removed() {
    if Users::find().is_err() {
        return;
    }
    let machine = Machine::new();
    let closed = r#"mkdir("$ENV{HOME}/a"); open(F, '>', "$ENV{HOME}/a/b"); print chmod(01000, "$ENV{HOME}/a");"#;
    let target = |perl: &Path| Cage::target(perl, &machine.path("open"), &machine.path("home"));
    assert_eq!(machine.attack(target, &[closed]).await, ["1"]);
    fs::remove_dir_all(machine.path("home")).expect("removed");
}

#[tokio::test]
async fn a_script_that_a_target_may_not_read_is_refused_with_the_remedy() {
    let Some(user) = User::for_role(ProgramRole::Target) else { return };
    let machine = Machine::new();
    let program = machine.path("state/program");
    fs::write(&program, "#!/bin/sh\n").expect("a script");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("executable");
    let cage = Cage::target(&program, &machine.path("open"), &machine.path("home"));
    let refused = Process::start(&plan(program, &[], cage), &machine.group).expect_err("closed").to_string();
    let closed = machine.path("state").canonicalize().expect("a folder").display().to_string();
    assert!(refused.starts_with(&format!("the user of targets ({}) can't enter {closed}: ", user.uid())), "{refused}");
    assert!(refused.contains(&format!("run `chmod o+x {closed}`, or move ")), "{refused}");
}

/// Runs the tests above as a user without privileges, for whom there is only the filter.
#[test]
fn the_same_holds_for_an_unprivileged_agent() {
    use std::os::unix::process::CommandExt;
    if !Uid::effective().is_root() {
        return;
    }
    // The build may be below a folder that this user may not enter.
    let folder = public_folder();
    let own = public_copy(&std::env::current_exe().expect("own path"), folder.path());
    let mut again = std::process::Command::new(own);
    again.args(["walls::", "--skip", "the_same_holds_for"]).uid(1000).gid(1000).current_dir("/");
    assert!(again.status().expect("started").success());
}
