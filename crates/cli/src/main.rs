//! The binary: server, agent and commands in one program.

use std::process::ExitCode;

fn main() -> ExitCode {
    brewbench_cli::program::main()
}
