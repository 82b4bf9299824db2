//! The commits of compared targets that agents built from a repository. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{cell::Row, comparability::Environments};

/// Characters of an id that are shown.
const SHORT: usize = 12;

/// The commits of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Commits {
    /// One for each target that was built from a repository: the baseline first, without repetitions.
    pub commits: Vec<Commit>,
    /// URL of what changed between the two; null if there are others, or the manifest has no `compare_url`.
    pub diff: Option<String>,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// When it was written, in ISO 8601.
    pub time: String,
    /// URL of what it changed; null if the manifest has no `compare_url`.
    pub url: Option<String>,
    /// The manifest's `compare_url`.
    #[serde(skip)]
    template: Option<String>,
}

impl Commit {
    /// Returns the start of its id.
    pub fn short(&self) -> &str {
        self.id.get(..SHORT).unwrap_or(&self.id)
    }

    /// Returns the day on which it was written.
    pub fn day(&self) -> &str {
        self.time.split('T').next().unwrap_or_default()
    }
}

/// Returns the commits of the rows' cells; none if no target was built from a repository.
pub fn commits(rows: &[Row], base: usize, environments: &Environments) -> Option<Commits> {
    let mut cells: Vec<_> = rows.iter().flat_map(|row| &row.cells).collect();
    cells.sort_by_key(|cell| (cell.subject != base, cell.subject));
    let mut commits: Vec<Commit> = Vec::new();
    for run in cells.into_iter().flat_map(|cell| &cell.runs) {
        let commit = environments.get(&run.id).and_then(|environment| {
            let fact = |name: &str| environment.facts.get(name).cloned();
            let (id, subject, time) =
                (fact("target.revision")?, fact("target.commit_subject")?, fact("target.commit_time")?);
            // What an agent says may lead anywhere, but only to a page.
            let template =
                fact("target.compare_url").filter(|url| url.starts_with("https://") || url.starts_with("http://"));
            let url = template.as_ref().map(|template| filled(template, &format!("{id}^"), &id));
            Some(Commit { id, subject, time, url, template })
        });
        if let Some(commit) = commit.filter(|commit| !commits.iter().any(|known| known.id == commit.id)) {
            commits.push(commit);
        }
    }
    let diff = match commits.as_slice() {
        [] => return None,
        [one, other] if one.template == other.template => {
            other.template.as_ref().map(|template| filled(template, &one.id, &other.id))
        }
        _ => None,
    };
    Some(Commits { commits, diff })
}

fn filled(template: &str, base: &str, head: &str) -> String {
    template.replace("{base}", base).replace("{head}", head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{
            chosen::Options,
            comparison_context::ComparisonContext,
            testing::{repeated, run},
            view::Comparison,
        },
        results::environment::facts::RunEnvironment,
        runs::model::Run,
        web::series_style::Marks,
    };

    fn environment(run: &Run, template: &str) -> RunEnvironment {
        let id = if run.spec.target == "api@main" { "a".repeat(40) } else { "b".repeat(40) };
        let facts = [
            ("target.revision", id.as_str()),
            ("target.commit_subject", "Sleep <longer>"),
            ("target.commit_time", "2026-03-04T12:00:00+01:00"),
            ("target.compare_url", template),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        RunEnvironment { facts, ..RunEnvironment::new(run, None) }
    }

    fn of(template: &str) -> Option<Commits> {
        let runs: Vec<Run> = ["api@main", "api@next"].into_iter().flat_map(|name| repeated(|n| run(name, n))).collect();
        let environments = runs.iter().map(|run| (run.id.clone(), environment(run, template))).collect();
        let known = ComparisonContext { environments, ..ComparisonContext::default() };
        Comparison::by(runs, &Marks::default(), &Options::default(), &known).commits
    }

    #[test]
    fn both_commits_and_what_changed_between_them_have_links() {
        let Commits { commits, diff } = of("https://git.example.com/api/compare/{base}...{head}").expect("commits");
        let [base, head] = commits.as_slice() else { panic!("{commits:?}") };
        assert_eq!((base.short(), head.short()), ("aaaaaaaaaaaa", "bbbbbbbbbbbb"));
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        assert_eq!(base.url, Some(format!("https://git.example.com/api/compare/{a}^...{a}")));
        assert_eq!(diff, Some(format!("https://git.example.com/api/compare/{a}...{b}")));
    }

    #[test]
    fn a_script_is_no_link() {
        let Commits { commits, diff } = of("javascript:alert(1)//{base}{head}").expect("commits");
        assert_eq!((commits[0].url.as_ref(), diff), (None, None));
    }
}
