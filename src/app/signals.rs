//! SIGTERM and SIGINT end the program in order; a second one ends it at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How a shell names the end by SIGINT.
const INTERRUPTED: i32 = 130;

/// Cancelled by the first signal.
///
/// # Panics
/// If the kernel refuses signal handlers.
pub fn end() -> CancellationToken {
    let token = CancellationToken::new();
    let (asked, mut terminate, mut interrupt) = (
        token.clone(),
        signal(SignalKind::terminate()).expect("a handler for SIGTERM"),
        signal(SignalKind::interrupt()).expect("a handler for SIGINT"),
    );
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if asked.is_cancelled() {
                std::process::exit(INTERRUPTED);
            }
            asked.cancel();
        }
    });
    token
}
