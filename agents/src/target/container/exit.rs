//! Notices the exit of a container, and whether the kernel OOM-killed it, without asking its engine: that may be gone,
//! and some engines don't report it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;

/// The first process of a container; the container ends with it.
#[derive(Debug)]
pub struct FirstProcess(AsyncFd<OwnedFd>);

impl FirstProcess {
    /// Watches a process.
    pub fn watch(pid: i32) -> io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("no process"))?;
        register(pidfd_open(pid, PidfdFlags::empty())?).map(Self)
    }

    /// Waits for its exit. Cancel-safe.
    pub async fn wait(&self) {
        while !self.has_exited() {
            // The process has exited once it is readable.
            if let Ok(mut ready) = self.0.readable().await
                && !self.has_exited()
            {
                ready.clear_ready();
            }
        }
    }

    /// Whether it has exited.
    pub fn has_exited(&self) -> bool {
        let mut of = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut of, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

/// Returns how many processes of a container the kernel has OOM-killed, from its log: the control group that counts
/// them vanishes with the last process. 0 if the log can't be read.
pub fn oom_kills(id: &str) -> u64 {
    let Ok(mut log) = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open("/dev/kmsg")
    else {
        return 0;
    };
    let (mut count, mut record) = (0, [0; 8 << 10]);
    loop {
        match log.read(&mut record) {
            Ok(0) => return count,
            Ok(length) => count += u64::from(is_oom_kill(&String::from_utf8_lossy(&record[..length]), id)),
            // Records were overwritten in the meantime.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(_) => return count,
        }
    }
}

fn is_oom_kill(record: &str, id: &str) -> bool {
    record.contains(";oom-kill:") && record.contains(id)
}

#[expect(unsafe_code, reason = "an OwnedFd stays open, and is the same descriptor, as long as it is owned")]
fn register(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the AsyncFd owns the descriptor, and nothing replaces it.
    unsafe { AsyncFd::register(descriptor) }.map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_oom_kill_names_its_group() {
        let record = "4,9,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=libpod-abc,mems_allowed=0,\
            oom_memcg=/libpod_parent/libpod-abc,task_memcg=/libpod_parent/libpod-abc,task=srv,pid=7,uid=0";
        assert!(is_oom_kill(record, "abc") && !is_oom_kill(record, "def"));
        assert!(!is_oom_kill("6,9,1,-;abc: link up", "abc"));
    }

    #[tokio::test]
    async fn an_exit_is_noticed_before_the_process_is_reaped() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("a process");
        let process = FirstProcess::watch(i32::try_from(child.id()).expect("a pid")).expect("a watch");
        assert!(!process.has_exited());
        child.kill().expect("killed");
        process.wait().await;
        assert!(process.has_exited());
        child.wait().expect("reaped");
    }
}
