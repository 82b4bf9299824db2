//! The request of a run as arguments of wrk and as a file of Lua.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brewbench_load::plan::{HttpVersion, RequestList, Reuse};
use brewbench_wire::job::Job;
use brewbench_wire::load::MIN_DURATION;
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::scenario::REQUESTS;

use crate::engine::native;
use crate::engine::round::{Bounds, LoadTarget, Round};
use crate::sandbox::ProgramRole;
use crate::sandbox::cage::user;

/// Time for its start and for the last responses.
const MARGIN: Duration = Duration::from_secs(30);

/// A job's only request.
#[derive(Debug)]
pub struct Request {
    home: PathBuf,
    path: String,
    connections: usize,
    spec: RunSpec,
}

impl Request {
    /// Reads the list of a job, and writes its request to a folder below `run_folder`. Fails with a sentence.
    pub fn from_job(job: &Job, run_folder: &Path) -> Result<Self, String> {
        let list = native::read(&job.scenario, &job.spec.parameters)?;
        let lua = lua(&list).map_err(|what| format!("{REQUESTS}: wrk can't {what}; native can"))?;
        let connections = job.spec.load().constant_vus().ok_or("wrk needs a constant number of VUs")?;
        let connections = usize::try_from(connections).map_err(|error| error.to_string())?;
        let path = list.requests.into_iter().flat_map(|request| request.paths).next().unwrap_or_default();
        let home = run_folder.join("files");
        let written = fs::create_dir(&home).and_then(|()| {
            fs::write(home.join("request.lua"), lua)?;
            user::give(&home, ProgramRole::Generator)
        });
        written.map_err(|error| format!("can't write {}: {error}", home.display()))?;
        Ok(Self { home, path, connections, spec: job.spec.clone() })
    }

    /// Returns the arguments for a round.
    pub(super) fn arguments(&self, load: &LoadTarget<'_>, round: Round) -> io::Result<Vec<String>> {
        let lasts = match round {
            Round::WarmUp => self.spec.longest_warm_up().max(MIN_DURATION),
            Round::Measure => self.duration().unwrap_or_default(),
        };
        let seconds = whole(lasts).map_err(io::Error::other).or_else(|fault| match round {
            // The agent ends a warm-up.
            Round::WarmUp => Ok(lasts.as_secs() + 1),
            Round::Measure => Err(fault),
        })?;
        let threads = threads(self.connections, load.cores.len());
        let arguments = [
            format!("--threads={threads}"),
            format!("--connections={}", self.connections),
            format!("--duration={seconds}s"),
            "--latency".to_owned(),
            format!("--script={}", self.home.join("request.lua").display()),
            format!("{}{}", load.base_url.trim_end_matches('/'), self.path),
        ];
        Ok(arguments.into())
    }

    /// Returns the bounds of the measured load. The error is a sentence.
    pub fn bounds(&self) -> Result<Bounds, String> {
        let lasts = self.duration().ok_or("a request list has no load of its own: choose VUs")?;
        whole(lasts).map(|_| Bounds { longest: lasts + MARGIN, rps_limit: None })
    }

    /// Returns its working directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the duration of the load.
    pub fn duration(&self) -> Option<Duration> {
        self.spec.load().duration()
    }
}

/// wrk counts whole seconds.
fn whole(lasts: Duration) -> Result<u64, String> {
    match lasts.subsec_nanos() {
        0 => Ok(lasts.as_secs()),
        _ => Err(format!("wrk measures whole seconds only, not {} s", lasts.as_secs_f64())),
    }
}

/// Returns the largest number of threads that divides the connections: wrk would open fewer otherwise.
fn threads(connections: usize, cores: usize) -> usize {
    (1..=cores.min(connections)).rev().find(|threads| connections.is_multiple_of(*threads)).unwrap_or(1)
}

/// Returns the only request of a list for wrk; the error is what wrk can't do.
fn lua(list: &RequestList) -> Result<String, &'static str> {
    let [request] = list.requests.as_slice() else { return Err("send several requests") };
    if request.paths.len() > 1 {
        return Err("send requests with several paths");
    }
    if list.http == HttpVersion::Two {
        return Err("send HTTP/2");
    }
    if list.connection == Reuse::PerRequest {
        return Err("open a connection for each request");
    }
    if list.think_time_ms > 0 {
        return Err("wait between requests");
    }
    if list.tls.server_name.is_some() {
        return Err("send another server name");
    }
    let headers = request.headers.iter();
    let headers = headers.map(|(name, value)| (format!("headers[{}]", quoted(name.as_bytes())), value.as_bytes()));
    let body = Some(("body".to_owned(), &*request.body.0)).filter(|(_, body)| !body.is_empty());
    let settings = [("method".to_owned(), request.method.as_bytes())].into_iter().chain(headers).chain(body);
    let lines: Vec<_> = settings.map(|(name, value)| format!("wrk.{name} = {}\n", quoted(value))).collect();
    Ok(lines.concat())
}

/// Returns a string of Lua: each byte by its number, so that none has a meaning of its own.
fn quoted(bytes: &[u8]) -> String {
    let escaped: Vec<_> = bytes.iter().map(|byte| format!("\\{byte:03}")).collect();
    format!("\"{}\"", escaped.concat())
}

#[cfg(test)]
mod tests {
    use brewbench_load::plan::{self, Body};

    use super::*;

    #[test]
    fn each_connection_is_opened() {
        let of = |connections| threads(connections, 4);
        assert_eq!([1, 3, 4, 10, 64, 7].map(of), [1, 3, 4, 2, 4, 1]);
        assert_eq!(threads(8, 0), 1);
    }

    #[test]
    fn what_wrk_can_not_send_is_named() {
        let get = plan::Request::get("/a");
        let post = plan::Request {
            method: "POST".to_owned(),
            headers: vec![("X-A".to_owned(), "\"]]".to_owned())],
            body: Body(b"\0\n".as_slice().into()),
            ..get.clone()
        };
        let text = lua(&RequestList::from(vec![post])).expect("a request");
        let expected = "wrk.method = \"\\080\\079\\083\\084\"\nwrk.headers[\"\\088\\045\\065\"] = \"\\034\\093\\093\"\n\
            wrk.body = \"\\000\\010\"\n";
        assert_eq!(text, expected);
        let list = |requests| RequestList::from(requests);
        let two = plan::Request { paths: vec!["/a".to_owned(), "/b".to_owned()], ..get.clone() };
        let cases = [
            (list(vec![get.clone(), get.clone()]), "send several requests"),
            (list(vec![two]), "send requests with several paths"),
            (RequestList { http: HttpVersion::Two, ..list(vec![get.clone()]) }, "send HTTP/2"),
            (RequestList { think_time_ms: 1, ..list(vec![get.clone()]) }, "wait between requests"),
            (RequestList { connection: Reuse::PerRequest, ..list(vec![get]) }, "open a connection for each request"),
        ];
        for (list, what) in cases {
            assert_eq!(lua(&list), Err(what));
        }
    }

    #[test]
    fn a_fraction_of_a_second_is_refused() {
        assert_eq!(whole(Duration::from_secs(3)), Ok(3));
        assert_eq!(whole(Duration::from_millis(1_500)), Err("wrk measures whole seconds only, not 1.5 s".to_owned()));
    }
}
