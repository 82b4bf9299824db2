//! `/runs/{id}/environment`: the environment of a run, and its differences from another run's.

use askama::Template;
use askama_web::WebTemplate;
use axum::extract::{Path, State};
use serde::Deserialize;

use crate::{
    app::{
        error::{QueryParams, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::Read,
    results::environment::{
        difference::{EnvironmentDifference, FactDifference, Weight},
        facts::{Group, RunEnvironment},
    },
    runs::{
        api::environment::read,
        filter::Filter,
        model::{Origin, Run},
    },
    web::{
        shell::{Section, Shell},
        time_ago,
    },
};

/// Maximum number of runs offered for comparison.
const OFFERED: usize = 40;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/environment.html")]
pub struct EnvironmentPage {
    shell: Shell,
    environment: RunEnvironment,
    groups: Vec<Group>,
    /// Generators of a distributed run.
    generators: Vec<(String, Vec<Group>)>,
    /// Runs to compare with.
    others: Vec<Other>,
    difference: Option<EnvironmentDifference>,
}

/// The differences between the hosts, or between the generators at the same place.
#[derive(Debug)]
struct SideBySide<'a> {
    /// The generators; none for the hosts.
    title: Option<String>,
    sentence: String,
    here: String,
    there: String,
    /// Differences by weight, the heaviest first.
    facts: Vec<(Weight, Vec<&'a FactDifference>)>,
}

impl SideBySide<'_> {
    fn matters(&self) -> bool {
        self.facts.first().is_some_and(|(weight, _)| *weight == Weight::Matters)
    }
}

/// A run to compare with.
#[derive(Debug)]
struct Other {
    id: RunId,
    name: String,
    is_chosen: bool,
}

/// The run to compare with.
#[derive(Debug, Deserialize)]
pub struct EnvironmentQuery {
    with: Option<RunId>,
}

/// `GET /runs/{id}/environment`, with `?with=ID` for the differences.
pub async fn environment(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    QueryParams(EnvironmentQuery { with }): QueryParams<EnvironmentQuery>,
) -> Result<EnvironmentPage> {
    let environment = read(&state, &id).await?;
    let with = match with.filter(|with| !with.as_str().is_empty()) {
        Some(with) => Some(read(&state, &with).await?),
        None => None,
    };
    let newest = crate::runs::store::list(&state.db.rows, &Filter::default(), 200).await?;
    let shell = Shell::signed_in(format!("Environment of {}", environment.target), Section::Runs, &caller.name);
    Ok(EnvironmentPage::new(shell, environment, with, &newest))
}

impl EnvironmentPage {
    fn new(shell: Shell, environment: RunEnvironment, with: Option<RunEnvironment>, newest: &[Run]) -> Self {
        Self {
            shell,
            groups: crate::results::environment::facts::all_groups(&environment),
            generators: environment
                .generators
                .iter()
                .map(|one| (one.agent.clone(), crate::results::environment::facts::generator_groups(one)))
                .collect(),
            others: others(&environment, with.as_ref(), newest),
            difference: with.map(|with| EnvironmentDifference::new(environment.clone(), with)),
            environment,
        }
    }

    fn name(&self) -> String {
        self.environment.name()
    }

    /// Returns the differences, the hosts first.
    fn facing(&self) -> Vec<SideBySide<'_>> {
        let Some(difference) = &self.difference else { return Vec::new() };
        let EnvironmentDifference { run, with, .. } = difference;
        let host = SideBySide {
            title: None,
            sentence: difference.summarize(),
            here: run.name(),
            there: with.name(),
            facts: by_weight(|weight| difference.with_weight(weight)),
        };
        let generators = difference.generators.iter().map(|one| SideBySide {
            title: Some(one.name()),
            sentence: one.summarize(),
            here: one.run.clone().unwrap_or_default(),
            there: one.with.clone().unwrap_or_default(),
            facts: by_weight(|weight| one.with_weight(weight)),
        });
        [host].into_iter().chain(generators).collect()
    }
}

fn by_weight<'a>(of: impl Fn(Weight) -> Vec<&'a FactDifference>) -> Vec<(Weight, Vec<&'a FactDifference>)> {
    Weight::ALL.into_iter().map(|weight| (weight, of(weight))).filter(|(_, facts)| !facts.is_empty()).collect()
}

/// Returns runs of agents, those of the same target first, always including the chosen one.
fn others(environment: &RunEnvironment, with: Option<&RunEnvironment>, newest: &[Run]) -> Vec<Other> {
    let is_offered = |run: &&Run| run.has_ended() && run.origin == Origin::Agent && run.id != environment.run;
    let (same, rest): (Vec<&Run>, Vec<&Run>) =
        newest.iter().filter(is_offered).partition(|run| run.spec.target == environment.target);
    let runs = same.into_iter().chain(rest).take(OFFERED);
    let mut others: Vec<Other> = runs
        .map(|run| {
            let when = time_ago::exact(Some(run.finished_at_ms.unwrap_or(run.queued_at_ms)));
            let name = format!("{}, {when}", RunEnvironment::new(run, None).name());
            Other { is_chosen: with.is_some_and(|with| with.run == run.id), id: run.id.clone(), name }
        })
        .collect();
    if let Some(with) = with.filter(|_| !others.iter().any(|other| other.is_chosen)) {
        others.insert(0, Other { id: with.run.clone(), name: with.name(), is_chosen: true });
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        results::{conditions::Conditions, environment::facts::GeneratorEnvironment},
        runs::testing::finished,
    };

    fn environment(run: &Run, facts: &[(&str, &str)]) -> RunEnvironment {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        RunEnvironment { facts, ..RunEnvironment::new(run, None) }
    }

    fn page(one: &RunEnvironment, with: Option<&RunEnvironment>, newest: &[Run]) -> String {
        let shell = Shell::signed_in("environment", Section::Runs, "ada");
        EnvironmentPage::new(shell, one.clone(), with.cloned(), newest).render().expect("it renders")
    }

    #[test]
    fn an_environment_is_shown_with_runs_to_compare_with() {
        let (one, other) = (finished("servy", 1), finished("gosherve", 2));
        let html = page(&environment(&one, &[("cpu.model", "Z80")]), None, &[one, other]);
        assert!(html.contains("Z80") && html.contains("<option value=\"gosherve-2\""), "{html}");
        assert!(!html.contains("<option value=\"servy-1\""), "the run itself is not offered");
    }

    #[test]
    fn generators_are_shown_and_compared_too() {
        let with = |model: &str| {
            let facts = [("cpu.model".to_owned(), model.to_owned())].into();
            let generator =
                GeneratorEnvironment { agent: "gen-1".to_owned(), facts, conditions: Conditions::default() };
            let run = finished("servy", 1);
            RunEnvironment { generators: vec![generator], ..environment(&run, &[("cpu.model", "Z80")]) }
        };
        let html = page(&with("8080"), None, &[]);
        assert!(html.contains("Load generator gen-1") && html.contains("8080"), "{html}");
        let other = RunEnvironment { run: "servy-2".to_owned().into(), ..with("6502") };
        let html = page(&with("8080"), Some(&other), &[]);
        assert!(html.contains("No differences; equal facts: 1"), "{html}");
        assert!(html.contains("load generator gen-1") && html.contains("1 relevant difference"), "{html}");
        assert!(html.contains("<td data-label=\"other run\">6502</td>"), "{html}");
    }

    #[test]
    fn differences_come_first_and_unknown_environments_are_not_compared() {
        let (one, other) = (finished("servy", 1), finished("servy", 2));
        let (first, second) =
            (environment(&one, &[("cpu.model", "Z80")]), environment(&other, &[("cpu.model", "6502")]));
        let html = page(&first, Some(&second), &[]);
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is not on the page: {html}"));
        assert!(at("Relevant differences") < at("6502"));
        assert!(html.contains("<option value=\"servy-2\" selected"), "{html}");
        let html = page(&first, Some(&environment(&other, &[])), &[]);
        assert!(html.contains("The environment of servy") && !html.contains("Relevant differences"));
        let html = page(&environment(&other, &[]), None, &[]);
        assert!(html.contains("No environment data") && !html.contains("<select"), "{html}");
    }

    #[test]
    fn html_in_facts_is_escaped() {
        let name = "<script>alert(1)</script>";
        let (one, other) = (finished(name, 1), finished(name, 2));
        let facts = [(name, name)];
        let html = page(&environment(&one, &facts), Some(&environment(&other, &[("a", name)])), &[other]);
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
