//! The commands: everything that the web pages do, for scripts. Results go to stdout, everything else to stderr.

pub mod agent;
pub mod agent_key;
pub mod alert;
pub mod audit;
pub mod backup;
pub mod baseline;
pub mod bisect;
pub mod check;
pub mod common;
pub mod compare;
pub mod config_file;
pub mod connection;
pub mod demo;
pub mod difference;
pub mod doctor;
pub mod duration;
pub mod events;
pub mod exit_code;
pub mod experiment;
pub mod export;
mod files;
pub mod fleet;
pub mod gate;
pub mod health;
mod help;
pub mod invite;
pub mod limits;
pub mod load;
pub mod login;
pub mod mcp;
pub mod profile;
pub mod program;
pub mod progress;
pub mod queue;
pub mod report;
pub mod restore;
pub mod retention;
pub mod run;
pub mod scenario;
pub mod search;
pub mod serve;
pub mod share;
pub mod size;
pub mod sparkline;
pub mod table;
pub mod target;
#[cfg(test)]
mod testing;
pub mod token;
pub mod trend;
pub mod user;
pub mod webhook;

use std::{path::PathBuf, process::ExitCode};

use brewbench::app::logs::Log;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use tracing::level_filters::LevelFilter;

use crate::{config_file::Configured, demo::Demo};

/// A release names its commit, too.
const VERSION: &str = match option_env!("BREWBENCH_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Benchmark and compare HTTP servers.
#[derive(Debug, Parser)]
#[command(name = "brewbench", version = VERSION, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Serve(serve::Serve),
    /// Start the agent, which runs targets and load for a server
    Agent(agent::Agent),
    /// Try it: server, agent and a finished comparison in one process
    Demo(Demo),
    /// Create, list and delete one-time registration links
    Invite(invite::Invite),
    /// Store a server's address and a token for the other commands
    Login(login::Login),
    /// Submit, list, watch, import and export runs
    #[command(subcommand)]
    Run(run::Run),
    /// List, watch, pause and extend experiments
    #[command(subcommand)]
    Experiment(experiment::Experiment),
    /// Load a URL or a list of requests from here, without a server
    Load(load::LoadCommand),
    /// Compare runs; with --candidate, pass or fail a candidate for CI
    Compare(compare::Compare),
    /// Find the commit that made a target worse
    Bisect(bisect::Bisect),
    /// Manage baselines: named sets of runs to compare with
    #[command(subcommand)]
    Baseline(baseline::Baseline),
    /// Accept, list and revoke differences in the work of two targets
    #[command(subcommand)]
    Difference(difference::Difference),
    /// Export a comparison as HTML, Markdown, CSV or JSON
    Report(report::Report),
    /// Export comparisons as a website of files
    #[command(subcommand)]
    Export(export::Export),
    /// Manage share links: comparisons that need no login
    #[command(subcommand)]
    Share(share::Share),
    /// Show and compare which functions take the CPU time of targets
    #[command(subcommand)]
    Profile(profile::Profile),
    /// Show results over versions and time; confirm or dismiss changes
    #[command(subcommand)]
    Trend(trend::Trend),
    /// Search targets, experiments, runs, pages and documentation
    Search(search::Search),
    /// List, describe, check and delete targets
    #[command(subcommand)]
    Target(target::Target),
    /// Manage machine sizes
    #[command(subcommand)]
    Size(size::Size),
    /// Manage scenarios: k6 scripts
    #[command(subcommand)]
    Scenario(scenario::Scenario),
    /// Manage agent keys
    #[command(subcommand)]
    AgentKey(agent_key::AgentKey),
    /// List, drain, disable, enable, rename, label and delete agents
    #[command(subcommand)]
    Fleet(fleet::Fleet),
    /// List queued runs and why they wait; move runs to the front
    Queue(queue::Queue),
    /// List active alerts; `alert rule` sets the thresholds
    Alert(alert::Alert),
    /// Manage webhooks for alerts and finished experiments
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    /// Manage API tokens
    #[command(subcommand)]
    Token(token::Token),
    /// Manage users and their roles
    #[command(subcommand)]
    User(user::User),
    /// Show the audit log
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Copy a server's database into a file while it runs
    Backup(backup::Backup),
    /// Replace the database of a data folder with a backup
    Restore(restore::Restore),
    /// Check the database of a data folder
    Check(check::Check),
    /// Check whether a server can store results
    Health(health::Health),
    /// Check a server: certificate, clocks, disk, backups, alerts
    Doctor(doctor::Doctor),
    /// Offer the server's tools to an assistant (Model Context Protocol)
    Mcp(mcp::Mcp),
    /// Show or set how long time series are kept
    Retention(retention::RetentionCommand),
    /// Check the configuration file of server and agent
    #[command(subcommand)]
    Config(config_file::Config),
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a man page for each command into a folder
    Man {
        /// The folder
        folder: PathBuf,
    },
}

impl Cli {
    /// Parses the arguments of the program, with what the configuration file adds.
    pub fn parse_arguments() -> Result<Self, clap::Error> {
        let mut root = help::grouped(config_file::root());
        let Configured { line, file } = match config_file::configured(std::env::args_os().collect()) {
            Ok(configured) => configured,
            Err(fault) => return Err(root.error(ErrorKind::InvalidValue, fault)),
        };
        let parsed = root.try_get_matches_from(line).and_then(|matches| Self::from_arg_matches(&matches));
        if let (Err(fault), Some(file)) = (&parsed, file)
            && fault.use_stderr()
        {
            eprintln!("with the settings of {}:", file.display());
        }
        parsed
    }

    /// Returns the log format; only long-running commands have a flag for it.
    pub fn log(&self) -> Log {
        match &self.command {
            Command::Serve(serve) => serve.log(),
            Command::Agent(agent) => agent.log(),
            _ => Log::default(),
        }
    }

    /// Returns the level of the logs unless `RUST_LOG` sets it.
    pub fn log_level(&self) -> LevelFilter {
        match &self.command {
            Command::Demo(demo) => demo.log_level(),
            _ => LevelFilter::INFO,
        }
    }

    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(serve) => serve.run().await?,
            Command::Agent(agent) => return agent.run().await,
            Command::Demo(demo) => return demo.run().await,
            Command::Invite(invite) => invite.run().await?,
            Command::Login(login) => login.run().await?,
            Command::Run(run) => return run.run().await,
            Command::Experiment(experiment) => return experiment.run().await,
            Command::Load(load) => return load.run().await,
            Command::Compare(compare) => return compare.run().await,
            Command::Bisect(bisect) => return Ok(bisect.run().await),
            Command::Baseline(baseline) => baseline.run().await?,
            Command::Difference(difference) => difference.run().await?,
            Command::Report(report) => report.run().await?,
            Command::Export(export) => export.run().await?,
            Command::Share(share) => share.run().await?,
            Command::Profile(profile) => profile.run().await?,
            Command::Trend(trend) => trend.run().await?,
            Command::Search(search) => search.run().await?,
            Command::Target(target) => return target.run().await,
            Command::Size(size) => size.run().await?,
            Command::Scenario(scenario) => scenario.run().await?,
            Command::AgentKey(key) => key.run().await?,
            Command::Fleet(fleet) => fleet.run().await?,
            Command::Queue(queue) => queue.run().await?,
            Command::Alert(alert) => alert.run().await?,
            Command::Webhook(webhook) => webhook.run().await?,
            Command::Token(token) => token.run().await?,
            Command::User(user) => user.run().await?,
            Command::Audit(audit) => audit.run().await?,
            Command::Backup(backup) => backup.run().await?,
            Command::Restore(restore) => restore.run().await?,
            Command::Check(check) => return check.run().await,
            Command::Health(health) => health.run().await?,
            Command::Doctor(doctor) => return doctor.run().await,
            Command::Mcp(mcp) => mcp.run().await?,
            Command::Retention(rule) => rule.run().await?,
            Command::Config(config) => config.run()?,
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), "brewbench", &mut std::io::stdout());
            }
            Command::Man { folder } => clap_mangen::generate_to(Self::command(), folder)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        help::grouped(Cli::command()).debug_assert();
    }

    #[test]
    fn the_help_has_every_command_once() {
        let text = help::grouped(Cli::command()).render_help().to_string();
        for command in Cli::command().get_subcommands() {
            let line = format!("\n  {} ", command.get_name());
            assert_eq!(text.matches(&line).count(), 1, "{line}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
