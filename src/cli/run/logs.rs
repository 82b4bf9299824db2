//! `brewbench run logs`

use clap::Args;

use crate::{
    cli::{common::Common, run::which::full_id, table::plain},
    results::logs::RunLogs,
};

/// Print the last output of a run's target and load generators.
#[derive(Debug, Args)]
pub struct Logs {
    #[command(flatten)]
    common: Common,
    /// The run's id, or its last characters
    id: String,
}

impl Logs {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, id } = self;
        let connection = common.connect()?;
        let id = full_id(&connection, &id).await?;
        let logs: RunLogs = connection.client.get(&format!("api/v1/runs/{id}/logs")).await?;
        common.print(&logs, text)
    }
}

fn text(logs: &RunLogs) -> String {
    let RunLogs { run: _, target, generators } = logs;
    if target.is_none() && generators.is_empty() {
        return "No logs: the run was imported, or has not ended.\n".to_owned();
    }
    let mut text = section("target", target.as_deref());
    for generator in generators {
        let title = generator.agent.as_ref().map_or_else(|| "k6".to_owned(), |agent| format!("k6 on {}", plain(agent)));
        text.push_str(&section(&title, Some(&generator.log)));
    }
    text
}

fn section(title: &str, log: Option<&str>) -> String {
    let body = match log {
        None => "(unknown)\n".to_owned(),
        Some("") => "(empty)\n".to_owned(),
        Some(log) => log.lines().flat_map(|line| [plain(line), "\n".to_owned()]).collect(),
    };
    format!("== {title}\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::logs::GeneratorLog;

    #[test]
    fn each_program_has_a_section_without_control_characters() {
        let log =
            |agent: Option<&str>, log: &str| GeneratorLog { agent: agent.map(str::to_owned), log: log.to_owned() };
        let generators = vec![log(Some("rack"), ""), log(None, "a\u{1b}[2J\nb")];
        let logs = RunLogs { run: String::new().into(), target: Some("up\n".to_owned()), generators };
        assert_eq!(text(&logs), "== target\nup\n== k6 on rack\n(empty)\n== k6\na\u{fffd}[2J\nb\n");
        let nothing = RunLogs { run: String::new().into(), target: None, generators: Vec::new() };
        assert_eq!(text(&nothing), "No logs: the run was imported, or has not ended.\n");
    }
}
