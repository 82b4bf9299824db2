//! `brewbench run logs`

use brewbench::results::logs::RunLogs;
use clap::Args;
use reqwest::Method;

use crate::{common::Common, run::which::full_id, table::plain};

/// Print the last output of a run's target and load generators.
#[derive(Debug, Args)]
pub struct Logs {
    #[command(flatten)]
    common: Common,
    /// The run's id, or its last characters
    id: String,
    /// Print only lines that contain TEXT, in upper or lower case, with their numbers
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
}

impl Logs {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, id, grep } = self;
        let connection = common.connect()?;
        let id = full_id(&connection, &id).await?;
        let client = &connection.client;
        let request = client.request(Method::GET, &format!("api/v1/runs/{id}/logs")).query(&[("grep", grep)]);
        let logs: RunLogs = client.json(request).await?;
        common.print(&logs, text)
    }
}

fn text(logs: &RunLogs) -> String {
    let RunLogs { run: _, target, target_lines, generators } = logs;
    if target.is_none() && generators.is_empty() {
        return "No logs: the run was imported, or has not ended.\n".to_owned();
    }
    let mut text = section("target", target.as_deref(), target_lines.as_deref());
    for generator in generators {
        let title = generator
            .agent
            .as_ref()
            .map_or_else(|| "load generator".to_owned(), |agent| format!("load generator on {}", plain(agent)));
        text.push_str(&section(&title, Some(&generator.log), generator.lines.as_deref()));
    }
    text
}

/// Formats one log; `numbers` are those of its lines in a search.
fn section(title: &str, log: Option<&str>, numbers: Option<&[usize]>) -> String {
    let body = match (log, numbers) {
        (None, _) => "(unknown)\n".to_owned(),
        (Some(""), Some(_)) => "(no matching lines)\n".to_owned(),
        (Some(""), None) => "(empty)\n".to_owned(),
        (Some(log), Some(numbers)) => {
            let line =
                |(number, line): (&usize, &str)| [number.to_string(), ": ".to_owned(), plain(line), "\n".to_owned()];
            numbers.iter().zip(log.lines()).flat_map(line).collect()
        }
        (Some(log), None) => log.lines().flat_map(|line| [plain(line), "\n".to_owned()]).collect(),
    };
    format!("== {title}\n{body}")
}

#[cfg(test)]
mod tests {
    use brewbench::results::logs::GeneratorLog;

    use super::*;

    #[test]
    fn each_program_has_a_section_without_control_characters() {
        let log = |agent: Option<&str>, log: &str| GeneratorLog {
            agent: agent.map(str::to_owned),
            log: log.to_owned(),
            lines: None,
        };
        let generators = vec![log(Some("rack"), ""), log(None, "a\u{1b}[2J\nb")];
        let (run, target) = (String::new().into(), Some("up\n".to_owned()));
        let logs = RunLogs { run, target, target_lines: None, generators };
        assert_eq!(
            text(&logs),
            "== target\nup\n== load generator on rack\n(empty)\n== load generator\na\u{fffd}[2J\nb\n"
        );
        let found = "== target\n1: up\n== load generator on rack\n(no matching lines)\n== load generator\n(no matching lines)\n";
        assert_eq!(text(&logs.grep("UP")), found);
        let nothing = RunLogs { run: String::new().into(), target: None, target_lines: None, generators: Vec::new() };
        assert_eq!(text(&nothing), "No logs: the run was imported, or has not ended.\n");
    }
}
