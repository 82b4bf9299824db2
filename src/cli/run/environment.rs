//! `brewbench run environment`

use std::fmt::Write;

use clap::Args;
use reqwest::Method;

use crate::{
    cli::{common::Common, run::which::full_id, table::plain},
    results::environment::{
        difference::{EnvironmentDifference, FactDifference, Weight},
        facts::{Group, RunEnvironment, of_generator, whole as groups},
    },
};

/// Shows under what a run was measured, or in what that differs from another run's.
#[derive(Debug, Args)]
pub struct Environment {
    #[command(flatten)]
    common: Common,
    /// The run's id, or the end of it
    id: String,
    /// Another run's, to be told the differences
    other: Option<String>,
}

impl Environment {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, id, other } = self;
        let connection = common.connect()?;
        let id = full_id(&connection, &id).await?;
        let Some(other) = other else {
            let environment: RunEnvironment = connection.client.get(&format!("api/v1/runs/{id}/environment")).await?;
            return common.print(&environment, whole);
        };
        let other = full_id(&connection, &other).await?;
        let path = format!("api/v1/runs/{id}/environment/difference");
        let request = connection.client.request(Method::GET, &path).query(&[("with", other)]);
        let difference: EnvironmentDifference = connection.client.json(request).await?;
        common.print(&difference, differences)
    }
}

fn whole(environment: &RunEnvironment) -> String {
    let mut text = format!("{}\n", plain(&environment.name()));
    if environment.facts.is_empty() {
        text.push_str("nothing is known of its environment: it was imported, or has not ended\n");
    }
    text.push_str(&told(groups(environment)));
    for generator in &environment.generators {
        let _ = writeln!(text, "\nLOAD FROM {}", plain(&generator.agent));
        text.push_str(&told(of_generator(generator)));
    }
    text
}

fn told(groups: Vec<Group>) -> String {
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
    let mut text = format!("{}\n", plain(&difference.sentence()));
    if !difference.differences.is_empty() {
        let _ = write!(text, "here:  {}\nthere: {}\n", plain(&run.name()), plain(&with.name()));
    }
    text.push_str(&weighed(|weight| difference.of(weight)));
    for one in &difference.generators {
        let _ = writeln!(text, "\n{}: {}", plain(&one.name()), plain(&one.sentence()));
        text.push_str(&weighed(|weight| one.of(weight)));
    }
    text
}

fn weighed<'a>(of: impl Fn(Weight) -> Vec<&'a FactDifference>) -> String {
    let mut text = String::new();
    for weight in Weight::ALL {
        let facts = of(weight);
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

/// A name and its value, which goes on below itself where the line ends.
fn entry(name: &str, value: &str) -> String {
    const NAME: usize = 32;
    let name = format!("  {:<width$} ", plain(name), width = if name.starts_with("  ") { 7 } else { NAME });
    let indent = " ".repeat(name.chars().count().min(NAME + 3));
    let options = textwrap::Options::new(80).initial_indent(&name).subsequent_indent(&indent);
    textwrap::fill(&plain(&value.replace('\u{a0}', " ")), options) + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        results::{conditions::Conditions, environment::facts::GeneratorEnvironment},
        runs::testing::finished,
    };

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
        let text = whole(&environment(1, &facts));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains(&format!("\nProcessor\n  {:<32} Z80\n", "model")), "{text}");
        assert!(!text.contains('\u{1b}'));
        assert!(whole(&environment(1, &[])).contains("nothing is known"));
    }

    #[test]
    fn those_who_made_the_load_have_environments_of_their_own() {
        let with = |model: &str| {
            let facts = [("cpu.model".to_owned(), model.to_owned())].into();
            let generator =
                GeneratorEnvironment { agent: "gen-1".to_owned(), facts, conditions: Conditions::default() };
            RunEnvironment { generators: vec![generator], ..environment(1, &[("cpu.model", "Z80")]) }
        };
        let text = whole(&with("8080"));
        assert!(text.contains(&format!("\nLOAD FROM gen-1\n\nProcessor\n  {:<32} 8080\n", "model")), "{text}");
        let other = RunEnvironment { run: "other".to_owned().into(), ..with("6502") };
        let expected = "The environments are the same in all 1 facts.\n\n\
            load from gen-1: 1 fact that matters differs; 0 are the same.\n\n\
            What matters\n  model (Processor)\n    here  8080\n    there 6502\n";
        assert_eq!(differences(&EnvironmentDifference::new(with("8080"), other)), expected);
    }

    #[test]
    fn differences_are_told_side_by_side() {
        let one = environment(1, &[("cpu.model", "Z80"), ("load.before", "0 0 0")]);
        let other = environment(2, &[("cpu.model", "6502"), ("load.before", "1 1 1")]);
        let text = differences(&EnvironmentDifference::new(one.clone(), other));
        let expected = "1 fact that matters differs; 0 are the same.\n\
            here:  servy 1.0, 2 vCPU / 4 GiB, repetition 1 on rack\nthere: servy 1.0, 2 vCPU / 4 GiB, repetition 2 on rack\n\n\
            What matters\n  model (Processor)\n    here  Z80\n    there 6502\n\n\
            What differs by nature\n  load average (Before the start)\n    here  0 0 0\n    there 1 1 1\n";
        assert_eq!(text, expected);
        let same =
            differences(&EnvironmentDifference::new(one.clone(), RunEnvironment { run: "b".to_owned().into(), ..one }));
        assert_eq!(same, "The environments are the same in all 2 facts.\n");
    }
}
