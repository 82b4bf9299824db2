//! The help of the program: its commands in groups, examples and exit codes. Pure.

use std::fmt::Write;

use clap::Command;

/// The commands in groups.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["demo", "serve", "agent", "login"]),
    (
        "Measure",
        &["run", "experiment", "load", "compare", "bisect", "baseline", "difference", "report", "export", "share"],
    ),
    ("Watch", &["trend", "profile", "queue", "alert", "search", "mcp"]),
    ("Define", &["target", "scenario", "size"]),
    (
        "Administer",
        &[
            "fleet",
            "agent-key",
            "user",
            "invite",
            "token",
            "webhook",
            "audit",
            "retention",
            "backup",
            "restore",
            "check",
            "config",
            "health",
            "doctor",
            "completions",
            "man",
        ],
    ),
];

const AFTER: &str = "\
Examples:
  brewbench demo
  brewbench run new --target old --target new --size 1/1GiB --vus 10 \\
      --duration 10s --wait
  brewbench compare --experiment ID

Exit codes:
  0  success
  1  error
  2  invalid command line
  3  a run that was waited for failed, was lost or is invalid
  4  a knee search that was waited for is undecided";

/// Returns the program with its commands in groups.
pub fn grouped(command: Command) -> Command {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "{title}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let _ = writeln!(text, "  {name:<12} {}", about.unwrap_or_default());
        }
        text.push('\n');
    }
    command
        .help_template("{about}\n\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}")
        .before_help(text)
        .after_help(AFTER)
}
