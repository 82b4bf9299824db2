//! `/runs/{id}/environment`: under what a run was measured, and in what that differs from another run's.

use askama::Template;
use askama_web::WebTemplate;
use axum::extract::{Path, State};
use serde::Deserialize;

use crate::{
    app::{
        error::{Asked, Result},
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

/// So many runs are offered to be held against.
const OFFERED: usize = 40;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/environment.html")]
pub struct EnvironmentPage {
    shell: Shell,
    environment: RunEnvironment,
    groups: Vec<Group>,
    /// Those who made its load, where it was not its agent.
    generators: Vec<(String, Vec<Group>)>,
    /// Runs that it can be held against.
    others: Vec<Other>,
    difference: Option<EnvironmentDifference>,
}

/// What differs of the target's machines, or of those of one who made load in each run.
#[derive(Debug)]
struct Facing<'a> {
    /// Who they are; nothing for the target's.
    title: Option<String>,
    sentence: String,
    here: String,
    there: String,
    /// The heavier first; none without facts.
    facts: Vec<(Weight, Vec<&'a FactDifference>)>,
}

impl Facing<'_> {
    fn matters(&self) -> bool {
        self.facts.first().is_some_and(|(weight, _)| *weight == Weight::Matters)
    }
}

/// A run in the list of others.
#[derive(Debug)]
struct Other {
    id: RunId,
    name: String,
    is_chosen: bool,
}

/// Which other run.
#[derive(Debug, Deserialize)]
pub struct With {
    with: Option<RunId>,
}

/// `GET /runs/{id}/environment`, `?with=ID` for the differences.
pub async fn environment(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    Asked(With { with }): Asked<With>,
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
            groups: crate::results::environment::facts::whole(&environment),
            generators: environment
                .generators
                .iter()
                .map(|one| (one.agent.clone(), crate::results::environment::facts::of_generator(one)))
                .collect(),
            others: others(&environment, with.as_ref(), newest),
            difference: with.map(|with| EnvironmentDifference::new(environment.clone(), with)),
            environment,
        }
    }

    fn name(&self) -> String {
        self.environment.name()
    }

    /// What differs, the target's machines first.
    fn facing(&self) -> Vec<Facing<'_>> {
        let Some(difference) = &self.difference else { return Vec::new() };
        let EnvironmentDifference { run, with, .. } = difference;
        let host = Facing {
            title: None,
            sentence: difference.sentence(),
            here: run.name(),
            there: with.name(),
            facts: weighed(|weight| difference.of(weight)),
        };
        let generators = difference.generators.iter().map(|one| Facing {
            title: Some(one.name()),
            sentence: one.sentence(),
            here: one.run.clone().unwrap_or_default(),
            there: one.with.clone().unwrap_or_default(),
            facts: weighed(|weight| one.of(weight)),
        });
        [host].into_iter().chain(generators).collect()
    }
}

fn weighed<'a>(of: impl Fn(Weight) -> Vec<&'a FactDifference>) -> Vec<(Weight, Vec<&'a FactDifference>)> {
    Weight::ALL.into_iter().map(|weight| (weight, of(weight))).filter(|(_, facts)| !facts.is_empty()).collect()
}

/// Runs of agents, those of the same target first, and in any case the chosen one.
fn others(environment: &RunEnvironment, with: Option<&RunEnvironment>, newest: &[Run]) -> Vec<Other> {
    let told = |run: &&Run| run.has_ended() && run.origin == Origin::Agent && run.id != environment.run;
    let (same, rest): (Vec<&Run>, Vec<&Run>) =
        newest.iter().filter(told).partition(|run| run.target == environment.target);
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
    fn an_environment_is_shown_whole_and_others_are_offered() {
        let (one, other) = (finished("servy", 1), finished("gosherve", 2));
        let html = page(&environment(&one, &[("cpu.model", "Z80")]), None, &[one, other]);
        assert!(html.contains("Z80") && html.contains("<option value=\"gosherve-2\""), "{html}");
        assert!(!html.contains("<option value=\"servy-1\""), "not itself");
    }

    #[test]
    fn those_who_made_the_load_are_shown_and_held_against_each_other_too() {
        let with = |model: &str| {
            let facts = [("cpu.model".to_owned(), model.to_owned())].into();
            let generator =
                GeneratorEnvironment { agent: "gen-1".to_owned(), facts, conditions: Conditions::default() };
            let run = finished("servy", 1);
            RunEnvironment { generators: vec![generator], ..environment(&run, &[("cpu.model", "Z80")]) }
        };
        let html = page(&with("8080"), None, &[]);
        assert!(html.contains("Load from gen-1") && html.contains("8080"), "{html}");
        let other = RunEnvironment { run: "servy-2".to_owned().into(), ..with("6502") };
        let html = page(&with("8080"), Some(&other), &[]);
        assert!(html.contains("The environments are the same in all 1 facts"), "{html}");
        assert!(html.contains("load from gen-1") && html.contains("1 fact that matters differs"), "{html}");
        assert!(html.contains("<td data-label=\"there\">6502</td>"), "{html}");
    }

    #[test]
    fn what_differs_stands_first_and_nothing_is_said_of_what_is_not_known() {
        let (one, other) = (finished("servy", 1), finished("servy", 2));
        let (first, second) =
            (environment(&one, &[("cpu.model", "Z80")]), environment(&other, &[("cpu.model", "6502")]));
        let html = page(&first, Some(&second), &[]);
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is not on the page: {html}"));
        assert!(at("What matters") < at("6502"));
        assert!(html.contains("<option value=\"servy-2\" selected"), "{html}");
        let html = page(&first, Some(&environment(&other, &[])), &[]);
        assert!(html.contains("Nothing is known of the environment of servy") && !html.contains("What matters"));
        let html = page(&environment(&other, &[]), None, &[]);
        assert!(html.contains("Nothing is known") && !html.contains("<select"), "{html}");
    }

    #[test]
    fn hostile_facts_stay_text() {
        let name = "<script>alert(1)</script>";
        let (one, other) = (finished(name, 1), finished(name, 2));
        let facts = [(name, name)];
        let html = page(&environment(&one, &facts), Some(&environment(&other, &[("a", name)])), &[other]);
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
