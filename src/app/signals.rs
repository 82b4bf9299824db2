//! SIGTERM and SIGINT shut the program down gracefully; a second signal ends it at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code that shells use for SIGINT.
const INTERRUPTED: i32 = 130;

/// Returns a token that the first signal cancels.
///
/// # Panics
/// If the kernel refuses signal handlers.
pub fn end() -> CancellationToken {
    let token = CancellationToken::new();
    let (shutdown, mut terminate, mut interrupt) = (
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
            if shutdown.is_cancelled() {
                std::process::exit(INTERRUPTED);
            }
            shutdown.cancel();
        }
    });
    token
}
