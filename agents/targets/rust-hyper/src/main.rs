//! A bundled target: hyper 1 on tokio, multi-threaded. Its responses equal those of `go-nethttp`.
//!
//! - [`arguments`]: the command line.
//! - [`content`]: content served from memory.
//! - [`site`]: routing and responses.
//! - [`server`]: connections, from accept to graceful shutdown.

mod arguments;
mod content;
mod server;
mod site;

use std::process::ExitCode;

use arguments::{Arguments, USAGE};
use mimalloc::MiMalloc;
use site::Site;

/// Releases are linked with musl, whose own allocator has one lock for all threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let listen = arguments.listen.clone();
    match server::run(&listen, Site::new(arguments)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
