//! Derives the number of connections from the limit of file descriptors.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors reserved for everything else: database files, webhooks, backups, the log.
const RESERVED: u64 = 512;

/// The maximum number of connections: the buffers of more would take a gigabyte.
const MAX_CONNECTIONS: u64 = 16_384;

/// The limit assumed if the kernel does not report one.
const FALLBACK: u64 = 1024;

/// Raises the soft limit of file descriptors to the hard limit.
pub fn raise() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) });
    if let Err(fault) = raised {
        tracing::debug!(%fault, "failed to raise the limit of file descriptors");
    }
}

/// Returns the number of connections that fit beside the reserved descriptors.
pub fn room() -> usize {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((FALLBACK, FALLBACK));
    room_within(soft)
}

fn room_within(limit: u64) -> usize {
    let room = limit - RESERVED.min(limit / 4);
    usize::try_from(room.min(MAX_CONNECTIONS)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_reserved() {
        assert_eq!(room_within(1024), 768);
        assert_eq!(room_within(4096), 3584);
        assert_eq!(room_within(u64::MAX), 16_384, "no limit");
    }
}
