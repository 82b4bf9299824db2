//! `brewbench run environment`

use std::fmt::Write;

use brewbench::results::environment::{
    difference::{EnvironmentDifference, FactDifference, Weight},
    facts::{Group, RunEnvironment, all_groups, generator_groups},
};
use clap::Args;
use reqwest::Method;

use crate::{
    common::Common,
    run::which::full_id,
    table::{at_spaces, plain},
};

/// Show the environment of a run, or how it differs from that of another run.
#[derive(Debug, Args)]
pub struct Environment {
    #[command(flatten)]
    common: Common,
    /// The run's id, or its last characters
    id: String,
    /// Another run, to show the differences only
    other: Option<String>,
}

impl Environment {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, id, other } = self;
        let connection = common.connect()?;
        let id = full_id(&connection, &id).await?;
        let Some(other) = other else {
            let environment: RunEnvironment = connection.client.get(&format!("api/v1/runs/{id}/environment")).await?;
            return common.print(&environment, text);
        };
        let other = full_id(&connection, &other).await?;
        let path = format!("api/v1/runs/{id}/environment/difference");
        let request = connection.client.request(Method::GET, &path).query(&[("with", other)]);
        let difference: EnvironmentDifference = connection.client.json(request).await?;
        common.print(&difference, differences)
    }
}

fn text(environment: &RunEnvironment) -> String {
    let mut text = format!("{}\n", plain(&environment.name()));
    if environment.facts.is_empty() {
        text.push_str("no environment: the run was imported, or has not ended\n");
    }
    text.push_str(&group_text(all_groups(environment)));
    for generator in &environment.generators {
        let _ = writeln!(text, "\nLOAD GENERATOR {}", plain(&generator.agent));
        text.push_str(&group_text(generator_groups(generator)));
    }
    text
}

fn group_text(groups: Vec<Group>) -> String {
    let mut text = String::new();
    for group in groups {
        let _ = writeln!(text, "\n{}", group.title);
        for fact in group.facts {
            text.push_str(&entry(&fact.name, &fact.value));
        }
    }
    text
}

fn differences(difference: &EnvironmentDifference) -> String {
    let EnvironmentDifference { run, with, .. } = difference;
    let mut text = format!("{}\n", plain(&difference.summarize()));
    if !difference.differences.is_empty() {
        let _ = write!(text, "here:  {}\nthere: {}\n", plain(&run.name()), plain(&with.name()));
    }
    text.push_str(&by_weight(|weight| difference.with_weight(weight)));
    for one in &difference.generators {
        let _ = writeln!(text, "\n{}: {}", plain(&one.name()), plain(&one.summarize()));
        text.push_str(&by_weight(|weight| one.with_weight(weight)));
    }
    text
}

fn by_weight<'a>(facts_of: impl Fn(Weight) -> Vec<&'a FactDifference>) -> String {
    let mut text = String::new();
    for weight in Weight::ALL {
        let facts = facts_of(weight);
        if !facts.is_empty() {
            let _ = writeln!(text, "\n{}", weight.title());
        }
        for fact in facts {
            let _ = writeln!(text, "  {} ({})", plain(&fact.label), plain(&fact.group));
            for (side, value) in [("here", &fact.run), ("there", &fact.with)] {
                text.push_str(&entry(&format!("  {side}"), value.as_deref().unwrap_or("–")));
            }
        }
    }
    text
}

/// Formats a name and its value, wrapped at 80 columns.
fn entry(name: &str, value: &str) -> String {
    const NAME: usize = 32;
    let name = format!("  {:<width$} ", plain(name), width = if name.starts_with("  ") { 7 } else { NAME });
    let indent = " ".repeat(name.chars().count().min(NAME + 3));
    let options = at_spaces(80).initial_indent(&name).subsequent_indent(&indent);
    textwrap::fill(&plain(&value.replace('\u{a0}', " ")), options) + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brewbench::results::{conditions::Conditions, environment::facts::GeneratorEnvironment};

    use super::*;
    use crate::testing::finished;

    fn environment(repetition: u32, facts: &[(&str, &str)]) -> RunEnvironment {
        let facts: BTreeMap<_, _> =
            facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        RunEnvironment {
            facts,
            agent: Some("rack".to_owned()),
            ..RunEnvironment::new(&finished("servy", repetition), None)
        }
    }

    #[test]
    fn an_environment_fits_eighty_columns() {
        let long = "a-part-of-a-path:".repeat(12);
        let facts = [("cpu.model", "Z80"), ("target.env.PATH", long.as_str()), ("net.core.somaxconn", "\u{1b}[2J")];
        let text = text(&environment(1, &facts));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains(&format!("\nProcessor\n  {:<32} Z80\n", "model")), "{text}");
        assert!(!text.contains('\u{1b}'));
        assert!(super::text(&environment(1, &[])).contains("no environment"));
    }

    #[test]
    fn each_load_generator_has_its_own_environment() {
        let with = |model: &str| {
            let facts = [("cpu.model".to_owned(), model.to_owned())].into();
            let generator =
                GeneratorEnvironment { agent: "gen-1".to_owned(), facts, conditions: Conditions::default() };
            RunEnvironment { generators: vec![generator], ..environment(1, &[("cpu.model", "Z80")]) }
        };
        let text = text(&with("8080"));
        assert!(text.contains(&format!("\nLOAD GENERATOR gen-1\n\nProcessor\n  {:<32} 8080\n", "model")), "{text}");
        let other = RunEnvironment { run: "other".to_owned().into(), ..with("6502") };
        let expected = "No differences; equal facts: 1.\n\n\
            load generator gen-1: 1 relevant difference; equal facts: 0.\n\n\
            Relevant differences\n  model (Processor)\n    here  8080\n    there 6502\n";
        assert_eq!(differences(&EnvironmentDifference::new(with("8080"), other)), expected);
    }

    #[test]
    fn differences_are_shown_side_by_side() {
        let one = environment(1, &[("cpu.model", "Z80"), ("load.before", "0 0 0")]);
        let other = environment(2, &[("cpu.model", "6502"), ("load.before", "1 1 1")]);
        let text = differences(&EnvironmentDifference::new(one.clone(), other));
        let expected = "1 relevant difference; equal facts: 0.\n\
            here:  servy 1.0, 2 vCPU / 4 GiB, repetition 1 on rack\nthere: servy 1.0, 2 vCPU / 4 GiB, repetition 2 on rack\n\n\
            Relevant differences\n  model (Processor)\n    here  Z80\n    there 6502\n\n\
            Expected differences\n  load average (Before the run)\n    here  0 0 0\n    there 1 1 1\n";
        assert_eq!(text, expected);
        let same =
            differences(&EnvironmentDifference::new(one.clone(), RunEnvironment { run: "b".to_owned().into(), ..one }));
        assert_eq!(same, "No differences; equal facts: 2.\n");
    }
}
