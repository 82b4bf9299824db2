//! The request list of a run, and the plans of its rounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_load::plan::{HttpVersion, Plan, RequestList};
use brewbench_load::request_list;
use brewbench_load::turns::Turns;
use brewbench_wire::RunId;
use brewbench_wire::job::Job;
use brewbench_wire::load::MIN_DURATION;
use brewbench_wire::run_spec::{self, RunSpec};
use brewbench_wire::scenario::{REQUESTS, Scenario};

use crate::engine::round::{Bounds, LoadTarget, Round};
use crate::sandbox::ProgramRole;
use crate::sandbox::cage::user;

/// Time for the start of the process, for connecting and for the last responses.
const MARGIN: Duration = Duration::from_secs(30);

/// A job's request list.
#[derive(Debug)]
pub struct Requests {
    home: PathBuf,
    list: RequestList,
    spec: RunSpec,
    /// Its turns in a duet.
    turns: Option<Turns>,
}

impl Requests {
    /// Reads the list of a job, and creates a folder below `run_folder`. Fails with a sentence.
    pub fn from_job(job: &Job, run_folder: &Path) -> Result<Self, String> {
        let home = run_folder.join("files");
        let created = fs::create_dir(&home).and_then(|()| user::give(&home, ProgramRole::Generator));
        created.map_err(|error| format!("can't create {}: {error}", home.display()))?;
        let mut list = read(&job.scenario, &job.spec.parameters)?;
        match job.spec.http_version {
            run_spec::HttpVersion::Auto => {}
            run_spec::HttpVersion::Http1 => list.http = HttpVersion::One,
            run_spec::HttpVersion::Http2 => list.http = HttpVersion::Two,
        }
        let turns = job.partner.as_ref().map(|partner| turns(job.run, partner.run));
        Ok(Self { home, list, spec: job.spec.clone(), turns })
    }

    /// Returns the plan of a round. The error is a sentence.
    pub fn plan(&self, load: &LoadTarget<'_>, round: Round, paused: bool) -> Result<Plan, String> {
        let asked = match round {
            Round::WarmUp => self.spec.load().at_peak(self.spec.longest_warm_up().max(MIN_DURATION)),
            Round::Measure => self.spec.load().clone(),
        };
        let list = self.list.clone();
        let plan =
            Plan { list, segment: load.segment, paused, turns: self.turns, ..Plan::get(load.base_url, "/", asked) };
        plan.check().map_err(|fault| fault.to_string())?;
        Ok(plan)
    }

    /// Returns the bounds of the measured load. The error is a sentence.
    pub fn bounds(&self) -> Result<Bounds, String> {
        let lasts = self.duration().ok_or("a request list has no load of its own: choose VUs or a rate")?;
        Ok(Bounds { longest: lasts + MARGIN, rps_limit: None })
    }

    /// Returns its working directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a connection may wait between its requests.
    pub fn may_wait(&self) -> bool {
        self.list.think_time_ms > 0
    }

    /// Returns the duration of the load, with the turns of the other one.
    pub fn duration(&self) -> Option<Duration> {
        self.spec.load().duration().map(|duration| self.lasts(duration))
    }

    /// Returns how long a load of a duration takes.
    pub fn lasts(&self, duration: Duration) -> Duration {
        self.turns.map_or(duration, |_| Turns::lasts(duration))
    }
}

/// Returns the turns of one of two runs. They agree without a message.
fn turns(run: RunId, partner: RunId) -> Turns {
    let [(_, own), (_, other)] = [run, partner].map(|run| run.0.as_u64_pair());
    Turns { seed: own ^ other, is_second: run > partner }
}

/// Checks the request list of a scenario. The error is a sentence.
pub fn check(scenario: &Scenario) -> Result<(), String> {
    read(scenario, &BTreeMap::new()).map(drop)
}

/// Reads the list of a scenario, with parameters for each `${NAME}` in it. The error is a sentence.
pub fn read(scenario: &Scenario, parameters: &BTreeMap<String, String>) -> Result<RequestList, String> {
    scenario.fault().map_or(Ok(()), Err)?;
    let text = scenario
        .request_list()
        .ok_or_else(|| format!("the scenario has no {REQUESTS}, which the native load generator needs"))?;
    let value = |name: &str| parameters.get(name).or_else(|| scenario.defaults.get(name)).map(String::as_str);
    let text = request_list::fill(text, value).map_err(|fault| format!("{REQUESTS}: {fault}"))?;
    let file = |path: &str| {
        let content = scenario.files.get(path).ok_or("it is not among the files of the scenario")?;
        Ok(content.bytes().to_vec())
    };
    request_list::read(&text, file).map_err(|fault| format!("{REQUESTS}: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str, parameters: &[(&str, &str)]) -> Result<RequestList, String> {
        let scenario = Scenario::of_script("x", "").with_file(REQUESTS, text).with_default("PAYLOAD", "1k");
        read(&scenario, &parameters.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn parameters_are_filled_in_once_and_can_not_leave_their_string() {
        let text = "[[request]]\npath = \"/file/${PAYLOAD}\"";
        let paths = |parameters| list(text, parameters).map(|list| list.requests[0].paths.clone());
        assert_eq!(paths(&[]), Ok(vec!["/file/1k".to_owned()]));
        assert_eq!(paths(&[("PAYLOAD", "$PAYLOAD")]), Ok(vec!["/file/$PAYLOAD".to_owned()]));
        let body = "[[request]]\npath = \"/\"\nbody = \"${PAYLOAD}\"";
        let hostile = "\"\nmethod = \"DELETE\\ ${PAYLOAD}";
        let list = list(body, &[("PAYLOAD", hostile)]).expect("a list");
        assert_eq!((list.requests[0].method.as_str(), &*list.requests[0].body.0), ("GET", hostile.as_bytes()));
    }

    #[test]
    fn a_list_that_can_not_be_read_is_named_with_its_line() {
        let fault = list("[[request]]\npath = \"/${SIZE}\"", &[]).expect_err("no value");
        assert_eq!(fault, "requests.toml: ${SIZE} has no value: give this parameter a default");
        let fault = list("[[request]]\npaths = \"paths.txt\"", &[]).expect_err("no file");
        assert!(fault.starts_with("requests.toml: line 2: paths: paths.txt: it is not among"), "{fault}");
        let fault = check(&Scenario::of_script("x", "")).expect_err("no list");
        assert_eq!(fault, "the scenario has no requests.toml, which the native load generator needs");
    }
}
