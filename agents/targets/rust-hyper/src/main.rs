//! A bundled target: hyper 1 on tokio, multi-threaded. It answers exactly as `go-nethttp` does.
//!
//! - [`arguments`]: the command line.
//! - [`content`]: what is served from memory.
//! - [`site`]: which answer a request gets.
//! - [`server`]: connections, from the first to a graceful end.

mod arguments;
mod content;
mod server;
mod site;

use std::process::ExitCode;

use arguments::{Arguments, USAGE};
use site::Site;

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
