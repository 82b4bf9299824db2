//! Starts the process of a container in namespaces and a control group of its own.
//!
//! Everything is done by util-linux: the container's mounts exist in its mount namespace only, and its processes are
//! the children of a process that the kernel kills with the test. So nothing has to be undone.

use std::{
    fmt::Write,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Child,
    sync::Arc,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{cgroup::Group, process::command};

/// What `sh` exits with when the container could not be set up, as container engines report it.
pub const START_ERROR: i32 = 128;

/// Waits for the first process of the container.
///
/// `unshare --fork` loses that a process was killed, and the shell must not write about it into the log.
const WAIT: &str = "exec 3>&2 2>/dev/null; (exec setpriv --pdeathsig KILL -- sh \"$1\" 2>&3 3>&-); exit $?";

/// A folder or file of this machine at a path of the container.
#[derive(Clone, Debug)]
pub struct Mount {
    pub source: PathBuf,
    pub target: String,
    pub read_only: bool,
}

/// How to start a container.
#[derive(Debug)]
pub struct Plan {
    /// A new folder for this attempt.
    pub folder: PathBuf,
    pub log: PathBuf,
    /// Path of the network namespace.
    pub network: String,
    pub host_name: String,
    pub working_folder: String,
    pub environment: Vec<(String, String)>,
    pub words: Vec<String>,
    pub mounts: Vec<Mount>,
}

/// The processes of a container. Dropping it kills them.
#[derive(Debug)]
pub struct Running {
    /// Waits for the first process of the container, outside its namespaces and its group.
    waiter: Child,
    group: Arc<Group>,
}

impl Running {
    /// Starts a container in a control group.
    pub fn start(plan: &Plan, group: Group) -> io::Result<Self> {
        fs::create_dir_all(plan.folder.join("scratch"))?;
        let (outside, inside) = (plan.folder.join("outside.sh"), plan.folder.join("inside.sh"));
        fs::write(&outside, outside_script(plan, &inside)?)?;
        fs::write(&inside, inside_script(plan, &group))?;
        let log = File::options().create(true).append(true).open(&plan.log)?;
        let mut waiter = command("nsenter");
        waiter.arg(format!("--net={}", plan.network));
        waiter.args(["unshare", "--mount", "--pid", "--uts", "--ipc", "sh", "-c", WAIT, "sh"]);
        waiter.arg(outside).stdout(log.try_clone()?).stderr(log).current_dir("/");
        Ok(Self { waiter: waiter.spawn()?, group: Arc::new(group) })
    }

    /// Returns its control group.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Returns the exit code once the container has exited, 128 and the number of a signal if that has killed it.
    pub fn exit_code(&mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.waiter.try_wait().ok().flatten()?;
        Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
    }

    /// Whether everything is set up and the program runs.
    pub fn has_started(&self) -> bool {
        !self.group.processes().is_empty()
    }

    /// Returns the process by which [`first_process`] finds the container.
    pub fn waiter(&self) -> u32 {
        self.waiter.id()
    }

    /// Asks the container to exit.
    pub fn terminate(&self) {
        if let Some(pid) = first_process(self.waiter()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }

    /// Kills the container.
    pub fn kill(&mut self) {
        match first_process(self.waiter()) {
            // All others in its pid namespace die with it.
            Some(pid) => drop(kill(Pid::from_raw(pid), Signal::SIGKILL)),
            None => drop(self.waiter.kill()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        // The waiter ends after the last process of the container.
        let _ = self.waiter.wait();
    }
}

/// Returns the first process of the container that this process waits for.
pub fn first_process(waiter: u32) -> Option<i32> {
    fs::read_to_string(format!("/proc/{waiter}/task/{waiter}/children")).ok()?.split(' ').next()?.parse().ok()
}

/// Builds the root file system, and prepares the sources of mounts, which are outside it.
///
/// It is an overlay over this machine's, whose upper layer is in memory and gone with the container.
fn outside_script(plan: &Plan, inside: &Path) -> io::Result<String> {
    let scratch = quote(&plan.folder.join("scratch").display().to_string());
    let mut script = format!(
        "set -e\ntrap 'test $? = 0 || exit {START_ERROR}' EXIT\n\
         echo {host} > /proc/sys/kernel/hostname\n\
         mount -t tmpfs tmpfs {scratch}\ncd {scratch}\nmkdir upper work root\n\
         mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root\n\
         mount --rbind /sys root/sys\nmount -t proc proc root/proc\n\
         mount -t tmpfs tmpfs root/dev\nmkdir root/dev/shm\n\
         for device in null zero full random urandom; do\n\
         touch root/dev/$device\nmount --bind /dev/$device root/dev/$device\ndone\n\
         ln -s /proc/self/fd root/dev/fd\nln -s fd/1 root/dev/stdout\nln -s fd/2 root/dev/stderr\n",
        host = quote(&plan.host_name),
    );
    for path in other_mounts(&fs::read_to_string("/proc/self/mounts")?) {
        let path = quote(&path);
        let _ = writeln!(script, "mount --rbind {path} root{path}");
    }
    script.push_str("mkdir root/.mounts\n");
    for (number, mount) in plan.mounts.iter().enumerate() {
        let source = quote(&mount.source.display().to_string());
        let create = if mount.source.is_file() { "touch" } else { "mkdir" };
        let _ = writeln!(script, "{create} root/.mounts/{number}\nmount --bind {source} root/.mounts/{number}");
        if mount.read_only {
            let _ = writeln!(script, "mount -o remount,bind,ro root/.mounts/{number}");
        }
    }
    let _ = writeln!(script, "exec chroot root sh {}", quote(&inside.display().to_string()));
    Ok(script)
}

/// Mounts what the container has asked for, and becomes its program.
///
/// The control group is entered last, so that only the program counts.
fn inside_script(plan: &Plan, group: &Group) -> String {
    let mut script = format!("set -e\ntrap 'test $? = 0 || exit {START_ERROR}' EXIT\n");
    for (number, mount) in plan.mounts.iter().enumerate() {
        let target = quote(&mount.target);
        let create = if mount.source.is_file() {
            format!("mkdir -p \"$(dirname {target})\"\ntouch {target}")
        } else {
            format!("mkdir -p {target}")
        };
        let _ = writeln!(script, "{create}\nmount --bind /.mounts/{number} {target}");
    }
    for entrance in group.entrances() {
        let _ = writeln!(script, "echo 0 > {}", quote(&entrance.display().to_string()));
    }
    let _ = write!(script, "exec env -i -C {}", quote(&plan.working_folder));
    for (name, value) in &plan.environment {
        let _ = write!(script, " {}", quote(&format!("{name}={value}")));
    }
    for word in &plan.words {
        let _ = write!(script, " {}", quote(word));
    }
    script.push('\n');
    script
}

/// Returns the mount points that an overlay over `/` does not show, without those below another one.
fn other_mounts(mounts: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for path in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
        let is_below = |folder: &str| path == folder || path.starts_with(&format!("{folder}/"));
        let is_special = ["/proc", "/sys", "/dev"].into_iter().any(is_below);
        if path != "/" && !is_special && !paths.iter().any(|above| is_below(above)) && Path::new(path).exists() {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Quotes a word for `sh`.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_shell_unchanged() {
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn mounts_below_others_come_with_them() {
        let mounts = "/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nx /tmp/x tmpfs rw 0 0\n";
        assert_eq!(other_mounts(mounts), ["/tmp"]);
    }
}
