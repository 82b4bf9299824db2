//! Starts a program in its group, on its cores and in its sandbox, and stops it with all its processes.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, fchown, getppid, write};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::lines::{Lines, Observer};
use crate::sandbox::Group;
use crate::sandbox::cage::{Cage, Lock, environment};

/// How much of the end of a program's output is kept.
pub const LOG_BYTES: usize = 64 << 10;

/// How long the rest of the output may take to arrive after the exit, on a busy machine.
const REST_OF_OUTPUT: Duration = Duration::from_secs(1);

/// How to start a program.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Additional variables beyond those [passed on](crate::sandbox::cage::environment) from the agent.
    pub environment: BTreeMap<String, String>,
    /// Working directory.
    pub folder: PathBuf,
    /// The CPUs it may use; empty for all.
    pub cores: Vec<usize>,
    /// What it may access on this machine.
    pub cage: Cage,
}

impl Plan {
    /// Opens a program whose user can't pass through the folders above: what the agent has opened, it can start.
    fn opened(&self) -> io::Result<Option<File>> {
        self.cage.is_closed(&self.program).then(|| File::open(&self.program)).transpose()
    }
}

/// A running program, the leader of its own process group. It is killed when this is dropped, and by the kernel when
/// the agent dies.
#[derive(Debug)]
pub struct Process {
    child: Child,
    leader: Pid,
    tail: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl Process {
    /// Starts a program inside a group. Fails if it can't be executed or can't enter the group.
    ///
    /// The kernel kills the program when the *thread* that calls this ends: call it from a worker thread of the runtime
    /// or from its main thread, never from `spawn_blocking`.
    pub fn start(plan: &Plan, group: &Group) -> io::Result<Self> {
        Self::start_with(plan, group, (None, None), None)
    }

    /// Starts a program as [`Self::start`] does, with an observer of its output.
    pub fn start_observed(plan: &Plan, group: &Group, observer: Observer) -> io::Result<Self> {
        Self::start_with(plan, group, (None, None), Some(observer))
    }

    /// Starts a program as [`Self::start`] does, and returns its standard output, which is not in its log then.
    pub fn start_piped(plan: &Plan, group: &Group) -> io::Result<(Self, Receiver)> {
        let (output, input) = io::pipe()?;
        let started = Self::start_with(plan, group, (None, Some(input.into())), None)?;
        Ok((started, Receiver::from_owned_fd(output.into())?))
    }

    /// Starts a program as [`Self::start_piped`] does, and returns its standard input, too.
    pub fn start_connected(plan: &Plan, group: &Group) -> io::Result<(Self, Sender, Receiver)> {
        let ((own_output, output), (input, own_input)) = (io::pipe()?, io::pipe()?);
        let started = Self::start_with(plan, group, (Some(input.into()), Some(output.into())), None)?;
        Ok((started, Sender::from_owned_fd(own_input.into())?, Receiver::from_owned_fd(own_output.into())?))
    }

    fn start_with(
        plan: &Plan,
        group: &Group,
        (stdin, stdout): (Option<Stdio>, Option<Stdio>),
        observer: Option<Observer>,
    ) -> io::Result<Self> {
        if let Some(obstacle) = plan.cage.obstacle(&plan.program) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, obstacle));
        }
        let (output, input) = io::pipe()?;
        let opened = plan.opened()?;
        let mut command = match &opened {
            Some(file) => Command::new(format!("/proc/self/fd/{}", file.as_raw_fd())),
            None => Command::new(&plan.program),
        };
        command.arg0(&plan.program).args(&plan.arguments).current_dir(&plan.folder);
        command.env_clear().envs(environment::passed_on());
        command.env("HOME", plan.cage.home()).env("TMPDIR", plan.cage.home());
        command.envs(&plan.environment).envs(group.marks());
        let stdout = stdout.map_or_else(|| input.try_clone().map(Stdio::from), Ok)?;
        command.stdin(stdin.unwrap_or_else(Stdio::null)).stdout(stdout).stderr(input);
        command.process_group(0).kill_on_drop(true);
        let lock = plan.cage.lock()?;
        if let Some(user) = lock.as_ref().and_then(Lock::user) {
            // Programs open `/dev/stdout` and `/dev/stderr`.
            fchown(&output, Some(user.uid()), Some(user.gid()))?;
        }
        confine(&mut command, group.entrances()?, &plan.cores, lock)?;
        let child = command.spawn()?;
        // The command holds the write ends of the pipes: the output ends only once those are closed here.
        drop(command);
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).ok_or_else(|| io::Error::other("no process"))?;
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let reader = tokio::spawn(collect(output, Arc::clone(&tail), observer)?);
        Ok(Self { child, leader: Pid::from_raw(leader), tail, reader })
    }

    /// Waits for the program to exit. Cancel-safe.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Returns the exit status if the program has exited.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Returns the program's pid.
    pub fn id(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to the program and its process group, if the program still runs.
    pub fn signal(&self, signal: Signal) {
        if self.child.id().is_some() {
            let _ = killpg(self.leader, signal);
        }
    }

    /// Asks the program to exit, and kills it with its group after `grace`; at once if that is zero. Fails if something
    /// can't be killed.
    pub async fn stop(&mut self, grace: Duration, group: &Group) -> io::Result<()> {
        if !grace.is_zero() {
            self.signal(Signal::SIGTERM);
            let _ = tokio::time::timeout(grace, self.child.wait()).await;
        }
        self.signal(Signal::SIGKILL);
        group.kill().await?;
        self.child.wait().await.map(|_| ())
    }

    /// Returns the last 64 KiB of output so far. After the exit this briefly waits for the rest of the pipe, but not
    /// for its end: a process left behind may hold it open.
    pub async fn log(&mut self) -> String {
        if self.ended().is_some() && !self.reader.is_finished() {
            let _ = tokio::time::timeout(REST_OF_OUTPUT, &mut self.reader).await;
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(tail.make_contiguous()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        self.reader.abort();
    }
}

/// Joins the last non-empty lines of a log.
pub fn last_lines(log: &str) -> String {
    let mut lines: Vec<String> = log
        .lines()
        .rev()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(3)
        .map(|line| line.chars().take(300).collect())
        .collect();
    lines.reverse();
    lines.join(" | ")
}

/// Describes an exit status, as part of a sentence.
pub fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(number)) => {
            let name = Signal::try_from(number).map_or_else(|_| number.to_string(), |signal| signal.to_string());
            format!("killed by {name}")
        }
        (None, None) => "unknown status".to_owned(),
    }
}

/// Whether a program is a text that its interpreter opens.
pub fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

/// Finds a program by path if the name contains a slash, else in `PATH`. Returns an absolute path, because a program is
/// started in another folder than the agent.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    let found = if name.components().count() > 1 {
        name.is_file().then(|| name.to_owned())?
    } else {
        std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())?
    };
    std::path::absolute(found).ok()
}

#[expect(unsafe_code, reason = "a process can enter groups, cores and sandbox only between fork and exec")]
fn confine(command: &mut Command, entrances: Vec<File>, cores: &[usize], cage: Option<Lock>) -> io::Result<()> {
    let mut pinned = CpuSet::new();
    for &core in cores {
        pinned.set(core)?;
    }
    let unpinned = cores.is_empty();
    let agent = Pid::this();
    let enter = move || {
        for entrance in &entrances {
            write(entrance, b"0")?;
        }
        if !unpinned {
            sched_setaffinity(Pid::from_raw(0), &pinned)?;
        }
        // After that no control group can be entered.
        cage.as_ref().map_or(Ok(()), Lock::close)?;
        // A change of the user resets this.
        set_pdeathsig(Signal::SIGKILL)?;
        // The agent may have died before the line above.
        if getppid() == agent { Ok(()) } else { Err(io::Error::from_raw_os_error(nix::libc::ESRCH)) }
    };
    // SAFETY: the closure runs in the forked child, where locks of other threads may be held forever. It makes system
    // calls only (write, sched_setaffinity, those of the cage, prctl, getppid) on prepared data, allocates nothing
    // and takes no lock.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Reads a pipe to its end, keeping the last part of what its observer keeps.
fn collect(
    output: io::PipeReader,
    tail: Arc<Mutex<VecDeque<u8>>>,
    observer: Option<Observer>,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut output = Receiver::from_owned_fd(output.into())?;
    let mut lines = observer.map(Lines::new);
    let keep = move |bytes: &[u8]| {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(bytes);
        let surplus = tail.len().saturating_sub(LOG_BYTES);
        tail.drain(..surplus);
    };
    Ok(async move {
        let mut buffer = vec![0; 8 << 10];
        while let Ok(length @ 1..) = output.read(&mut buffer).await {
            match &mut lines {
                Some(lines) => keep(&lines.read(&buffer[..length])),
                None => keep(&buffer[..length]),
            }
        }
        keep(&lines.as_mut().map(Lines::finish).unwrap_or_default());
    })
}

#[cfg(test)]
mod tests {
    use brewbench_wire::RunId;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

    use super::*;
    use crate::sandbox::{ProgramRole, Sandbox};

    fn shell(script: &str) -> Plan {
        Plan {
            program: find_program(Path::new("sh")).expect("a shell"),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: BTreeMap::new(),
            folder: "/".into(),
            cores: Vec::new(),
            cage: Cage::target(Path::new("/"), Path::new("/"), Path::new("/")),
        }
    }

    fn group(name: &str) -> Group {
        Sandbox::none(name).open(RunId::now(), ProgramRole::Target).expect("a group")
    }

    #[tokio::test]
    async fn a_log_keeps_its_end() {
        let group = group("log");
        let plan = shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; printf '\\377end' >&2");
        let mut process = Process::start(&plan, &group).expect("a shell");
        assert!(process.wait().await.expect("an end").success());
        let log = process.log().await;
        assert!(log.ends_with("line 19999\n\u{fffd}end"), "{:?}", last_lines(&log));
        assert!((LOG_BYTES..=LOG_BYTES + 2).contains(&log.len()), "{}", log.len());
    }

    #[tokio::test]
    async fn a_process_that_ignores_sigterm_is_killed_without_control_groups() {
        let group = group("stubborn");
        let plan = shell("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo up; while :; do sleep 1; done' & wait");
        let mut process = Process::start(&plan, &group).expect("a shell");
        while !process.log().await.contains("up") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(group.processes().len() >= 2);
        process.stop(Duration::from_millis(20), &group).await.expect("a stop");
        assert!(group.processes().is_empty());
    }

    #[test]
    fn a_program_with_a_relative_path_is_found_at_its_absolute_path() {
        let own = std::env::current_dir().expect("a folder");
        assert_eq!(find_program(Path::new("src/lib.rs")), Some(own.join("src/lib.rs")));
        assert_eq!(find_program(Path::new("src/nowhere")), None);
    }

    #[tokio::test]
    async fn a_program_runs_on_its_cores() {
        let core = crate::sandbox::cores::allowed()[0];
        let plan = Plan { cores: vec![core], ..shell("grep Cpus_allowed_list /proc/self/status") };
        let mut process = Process::start(&plan, &group("cores")).expect("a shell");
        process.wait().await.expect("an end");
        assert_eq!(process.log().await, format!("Cpus_allowed_list:\t{core}\n"));
    }

    #[test]
    fn the_kernel_kills_a_program_whose_parent_is_gone() {
        let starter = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let process =
                runtime.block_on(async { Process::start(&shell("exec sleep 600"), &group("gone")).expect("a shell") });
            let pid = process.leader;
            // As if the agent had been killed: nothing stops the program.
            std::mem::forget(process);
            assert_eq!(waitpid(pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive));
            pid
        });
        let pid = starter.join().expect("a running program");
        let ended = waitpid(pid, None).expect("an exit long before 600 s");
        assert_eq!(ended, WaitStatus::Signaled(pid, Signal::SIGKILL, false));
    }

    #[test]
    fn last_lines_are_few_and_short() {
        assert_eq!(last_lines("a\nb\n\n c \nd\n"), "b | c | d");
        assert_eq!(last_lines(""), "");
        assert_eq!(last_lines(&"x".repeat(1000)).len(), 300);
    }
}
