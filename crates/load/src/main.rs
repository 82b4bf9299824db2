//! `brewbench-load`: see [`brewbench_load::program`].

use std::process::ExitCode;

fn main() -> ExitCode {
    brewbench_load::program::main()
}
