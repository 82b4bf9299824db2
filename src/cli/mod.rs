//! The commands: what the site does for people, for scripts. Figures go to stdout, everything else to stderr.

pub mod agent;
pub mod agent_key;
pub mod agent_restore;
pub mod alert;
pub mod audit;
pub mod backup;
pub mod baseline;
pub mod check;
pub mod common;
pub mod compare;
pub mod connection;
pub mod demo;
pub mod difference;
pub mod duration;
pub mod events;
pub mod exit_code;
pub mod experiment;
mod files;
pub mod fleet;
pub mod gate;
pub mod invite;
pub mod limits;
pub mod load;
pub mod login;
pub mod program;
pub mod progress;
pub mod queue;
pub mod report;
pub mod restore;
pub mod run;
pub mod scenario;
pub mod series_rule;
pub mod serve;
pub mod share;
pub mod size;
pub mod table;
pub mod target;
pub mod token;
pub mod trend;
pub mod user;
mod view;
pub mod webhook;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::{app::logs::Log, cli::demo::Demo};

/// Benchmarks HTTP server implementations and puts them side by side.
#[derive(Debug, Parser)]
#[command(name = "brewbench", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  not done: the error says why
  2  the command line can't be understood
  3  the runs that were waited for ended, but not all with figures that count";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Serve(serve::Serve),
    /// Start the agent of this machine: runs targets and load for a server; `agent doctor`
    Agent(agent::Agent),
    /// Put back what a killed agent with --steady-cpu left, if nobody has yet
    AgentRestore(agent_restore::AgentRestore),
    /// Try it: server, agent and a finished comparison in one process
    Demo(Demo),
    /// Make a one-time registration link; `invite list` and `invite withdraw`
    Invite(invite::Invite),
    /// Keep a server's address and a token for the other commands
    Login(login::Login),
    /// Runs: submit, list, watch, import, …
    #[command(subcommand)]
    Run(run::Run),
    /// Experiments: several runs that were submitted together
    #[command(subcommand)]
    Experiment(experiment::Experiment),
    /// Saved views of the history
    #[command(subcommand)]
    View(view::View),
    /// Put runs side by side; with --candidate, say whether that is a regression
    Compare(compare::Compare),
    /// Named baselines: runs that others are held against
    #[command(subcommand)]
    Baseline(baseline::Baseline),
    /// Differences in the work of two targets that are accepted: accept, list, revoke
    #[command(subcommand)]
    Difference(difference::Difference),
    /// Write a comparison as a file: HTML that needs nothing else, Markdown, CSV or JSON
    Report(report::Report),
    /// Links to a comparison that need no login
    #[command(subcommand)]
    Share(share::Share),
    /// Cells over versions and time: list, show, confirm or dismiss a change
    #[command(subcommand)]
    Trend(trend::Trend),
    /// Server implementations that agents can start
    #[command(subcommand)]
    Target(target::Target),
    /// Machine sizes
    #[command(subcommand)]
    Size(size::Size),
    /// k6 scripts
    #[command(subcommand)]
    Scenario(scenario::Scenario),
    /// Keys of agents
    #[command(subcommand)]
    AgentKey(agent_key::AgentKey),
    /// Agents: list, drain, disable, enable, rename, label, forget
    #[command(subcommand)]
    Fleet(fleet::Fleet),
    /// What waits, for which agent and why; `queue next`: what goes first
    Queue(queue::Queue),
    /// What somebody should look at; `alert rule`: from when on
    Alert(alert::Alert),
    /// Who is told elsewhere of alerts and of experiments that are over
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    /// API tokens
    #[command(subcommand)]
    Token(token::Token),
    /// People and their roles
    #[command(subcommand)]
    User(user::User),
    /// Who did what
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Copy a server's database into a file, while it goes on
    Backup(backup::Backup),
    /// Put a backup in the place of a data folder's database
    Restore(restore::Restore),
    /// Look the database of a data folder over
    Check(check::Check),
    /// How long series are kept
    SeriesRule(series_rule::SeriesRuleOf),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Cli {
    /// How the log is to be written: those that go on for long can be told.
    pub fn log(&self) -> Log {
        match &self.command {
            Command::Serve(serve) => serve.log(),
            Command::Agent(agent) => agent.log(),
            _ => Log::default(),
        }
    }

    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Serve(serve) => serve.run().await?,
            Command::Agent(agent) => return agent.run().await,
            Command::AgentRestore(restore) => restore.run()?,
            Command::Demo(demo) => return demo.run().await,
            Command::Invite(invite) => invite.run().await?,
            Command::Login(login) => login.run().await?,
            Command::Run(run) => return run.run().await,
            Command::Experiment(experiment) => return experiment.run().await,
            Command::Compare(compare) => return compare.run().await,
            Command::Baseline(baseline) => baseline.run().await?,
            Command::Difference(difference) => difference.run().await?,
            Command::Report(report) => report.run().await?,
            Command::Share(share) => share.run().await?,
            Command::View(view) => view.run().await?,
            Command::Trend(trend) => trend.run().await?,
            Command::Target(target) => target.run().await?,
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
            Command::SeriesRule(rule) => rule.run().await?,
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), "brewbench", &mut std::io::stdout());
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_makes_sense_to_its_parser() {
        Cli::command().debug_assert();
    }
}
