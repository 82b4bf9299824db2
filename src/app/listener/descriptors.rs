//! How many connections a process has file descriptors for.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// For everything that is no connection from outside: the database's files, webhooks, backups, the log.
const RESERVED: u64 = 512;

/// More are no server of this kind, and their buffers would take a gigabyte.
const MOST: u64 = 16_384;

/// What is assumed where the kernel does not say.
const USUAL: u64 = 1024;

/// Raises the limit as far as this process may.
pub fn raise() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) });
    if let Err(fault) = raised {
        tracing::debug!(%fault, "the limit of file descriptors stays as it is");
    }
}

/// How many connections there is room for beside what is reserved.
pub fn room() -> usize {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((USUAL, USUAL));
    room_within(soft)
}

fn room_within(limit: u64) -> usize {
    let room = limit - RESERVED.min(limit / 4);
    usize::try_from(room.min(MOST)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_no_connections() {
        assert_eq!(room_within(1024), 768);
        assert_eq!(room_within(4096), 3584);
        assert_eq!(room_within(u64::MAX), 16_384, "no limit");
    }
}
