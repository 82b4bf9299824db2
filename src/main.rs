//! The program: server, agent and commands in one binary.

use std::process::ExitCode;

/// Rows are made by the database's threads and freed by those that answer; glibc's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    brewbench::cli::program::main()
}
