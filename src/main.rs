//! The program: server, agent and commands in one binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    brewbench::cli::program::main()
}
