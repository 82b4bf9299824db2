//! `brewbench load`: loads a server from this machine, without a server of brewbench.

use std::{
    fmt::Write as _,
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, anyhow, bail};
use brewbench::{
    runs::load::{describe, parse_stages},
    web::format,
};
use brewbench_load::{
    events::{Distribution, Event, Second, Summary},
    generator::Generator,
    plan::{HttpVersion, Plan, Request, RequestList, Spacing},
    request_list,
    stop::Stop,
};
use brewbench_wire::{
    histogram::Histogram,
    load::{Closed, Form, Load, Open, Stage},
};
use clap::{ArgGroup, Args, ValueEnum};
use tokio::task::spawn_blocking;
use url::Url;

use super::{duration, table::table};

/// Virtual users if neither they nor a rate are given.
const USUAL_VUS: u32 = 50;

/// Load a URL or a list of requests from here, without a server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("level").args(["vus", "rate", "vus_stages", "rate_stages"]))]
pub struct LoadCommand {
    /// URL to request, or a TOML file with requests
    what: String,
    /// The target of the requests in a file
    #[arg(long)]
    url: Option<String>,
    /// Virtual users: connections that send their next request after a response [default: 50]
    #[arg(long)]
    vus: Option<u32>,
    /// Requests started per second, independent of response times
    #[arg(long)]
    rate: Option<u32>,
    /// Duration
    #[arg(long, default_value = "10s", value_parser = duration::seconds)]
    duration: f64,
    /// Virtual users in stages, starting at zero, each as DURATION:VUS, e.g. 5s:10,10s:50
    #[arg(long, value_name = "STAGES", conflicts_with = "duration")]
    vus_stages: Option<String>,
    /// Requests per second in stages, starting at zero
    #[arg(long, value_name = "STAGES", conflicts_with = "duration")]
    rate_stages: Option<String>,
    /// Maximum connections to sustain a rate [default: a tenth of the rate, between 10 and 1,000]
    #[arg(long, value_name = "N")]
    max_vus: Option<u32>,
    /// Start the requests of a rate at random, as independent users do
    #[arg(long)]
    poisson: bool,
    /// HTTP version [default: that of the file, else auto]
    #[arg(long, value_enum)]
    http_version: Option<Version>,
    /// Accept any certificate
    #[arg(long)]
    insecure: bool,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Print JSON: the summary with its histograms
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  brewbench load http://localhost:8080/
  brewbench load http://localhost:8080/ --rate 5000 --duration 30s
  brewbench load requests.toml --url http://localhost:8080 --vus 200

A file with requests:
  [[request]]
  path = \"/\"
  weight = 3
  [[request]]
  method = \"POST\"
  path = \"/items\"
  headers = { content-type = \"application/json\" }
  body = \"{}\"
  expect = { status = 201 }";

/// A version of HTTP.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Version {
    /// With TLS what the target prefers, otherwise 1.1.
    Auto,
    /// HTTP/1.1.
    #[value(name = "1.1")]
    One,
    /// HTTP/2; without TLS with prior knowledge.
    #[value(name = "2")]
    Two,
}

impl LoadCommand {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let plan = self.plan()?;
        let is_shown = !self.json && io::stderr().is_terminal();
        let stop = Stop::default();
        let on_interrupt = stop.clone();
        let interrupt = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                on_interrupt.request();
            }
        });
        if !self.json {
            println!("{}{}, {}", plan.url, self.path_of(&plan), words(&plan.load));
        }
        let summary = spawn_blocking(move || load(&plan, &stop, is_shown)).await??;
        interrupt.abort();
        if self.json {
            println!("{}", serde_json::to_string(&summary)?);
        } else {
            print!("{}", text(&summary));
        }
        let is_measured = summary.fault.is_none() && summary.requests > summary.failed;
        Ok(if is_measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let (url, mut list) = match Url::parse(&self.what) {
            Ok(url) if url.has_host() => {
                let path = match url.query() {
                    Some(query) => format!("{}?{query}", url.path()),
                    None => url.path().to_owned(),
                };
                (url.origin().ascii_serialization(), RequestList::from(vec![Request::get(&path)]))
            }
            _ => {
                let url =
                    self.url.clone().ok_or_else(|| anyhow!("--url: name the target of the requests in a file"))?;
                (url, read(Path::new(&self.what))?)
            }
        };
        list.tls.insecure |= self.insecure;
        if let Some(version) = self.http_version {
            list.http = match version {
                Version::Auto => HttpVersion::Auto,
                Version::One => HttpVersion::One,
                Version::Two => HttpVersion::Two,
            };
        }
        let spacing = if self.poisson { Spacing::Poisson } else { Spacing::Uniform };
        Ok(Plan { list, spacing, threads: self.threads, ..Plan::get(&url, "/", self.load()?) })
    }

    fn load(&self) -> anyhow::Result<Load> {
        let stages = |flag: &str, text: &str| -> anyhow::Result<Vec<Stage>> {
            parse_stages(text).map_err(|fault| anyhow!("--{flag}: {fault}"))
        };
        // Of any length: a load that is too short or too long is refused with its limits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let constant = |level| Form::Constant { level, duration_ms: (self.duration * 1e3).round() as u64 };
        let load = match (&self.vus_stages, &self.rate_stages, self.rate) {
            (Some(text), ..) => Closed::new(Form::Stages(stages("vus-stages", text)?)).map(Load::Closed),
            (_, Some(text), _) => Open::new(Form::Stages(stages("rate-stages", text)?), self.max_vus).map(Load::Open),
            (.., Some(rate)) => Open::new(constant(rate), self.max_vus).map(Load::Open),
            _ => Closed::new(constant(self.vus.unwrap_or(USUAL_VUS))).map(Load::Closed),
        };
        load.map_err(|fault| anyhow!("--{}: {}", fault.part.to_string().replace('_', "-"), fault.text))
    }

    /// Returns the path of a single request, to be named after the target.
    fn path_of<'a>(&self, plan: &'a Plan) -> &'a str {
        match plan.list.requests.as_slice() {
            [Request { paths, .. }] if self.url.is_none() => paths.first().map_or("", String::as_str),
            _ => "",
        }
    }
}

/// Reads a list of requests; files that it names are beside it.
fn read(path: &Path) -> anyhow::Result<RequestList> {
    let text = fs::read_to_string(path).with_context(|| {
        format!("{} is no URL with a scheme and a host, and can't be read as a file", path.display())
    })?;
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let file = |name: &str| fs::read(folder.join(name)).map_err(|error| error.to_string());
    request_list::read(&text, file).map_err(|fault| anyhow!("{}: {fault}", path.display()))
}

fn load(plan: &Plan, stop: &Stop, is_shown: bool) -> anyhow::Result<Summary> {
    let generator = Generator::prepare(plan)?;
    let mut summary = None;
    generator.run(stop, |event| {
        match event {
            Event::Second(second) if is_shown => {
                write!(io::stderr(), "\r\x1b[K{}", line(&second))?;
                io::stderr().flush()?;
            }
            Event::Summary(all) => summary = Some(*all),
            Event::Ready | Event::Started | Event::Second(_) => {}
        }
        Ok(())
    })?;
    if is_shown {
        write!(io::stderr(), "\r\x1b[K")?;
    }
    match summary {
        Some(summary) => Ok(summary),
        None => bail!("the load generator reported nothing"),
    }
}

/// Describes a load, whose iterations are requests.
fn words(load: &Load) -> String {
    let level = describe(load).replace('\u{a0}', " ").replace("iteration", "request");
    match load.duration() {
        Some(lasts) => format!("{level} for {}", format::duration(Some(lasts.as_secs_f64())).text()),
        None => level,
    }
}

/// What is shown of a second while the load runs.
fn line(second: &Second) -> String {
    let at = |q| milliseconds(second.succeeded.quantile(q).map(|quantile| quantile.estimate));
    let failed = if second.failed > 0 { format!(", {} failed", count(second.failed)) } else { String::new() };
    format!(
        "{:>4} s  {} requests/s{failed}  p50 {}  p99 {}",
        second.until_ms / 1_000,
        count(second.requests),
        at(0.5),
        at(0.99)
    )
}

/// Formats a summary.
fn text(summary: &Summary) -> String {
    let seconds = summary.planned_ms.min(summary.elapsed_ms).max(1) as f64 / 1e3;
    let per_second = |amount: u64| amount as f64 / seconds;
    let in_time = summary.requests.saturating_sub(summary.late_requests);
    let bytes = |amount: f64| format::bytes(Some(amount)).text().to_owned();
    let mut text = format!(
        "  requests  {}, {} per second\n  failed    {}\n  received  {}, {} per second\n",
        count(summary.requests),
        format::number(Some(per_second(in_time))).text(),
        failures(summary),
        bytes(summary.bytes_in as f64),
        bytes(per_second(summary.bytes_in)),
    );
    for (amount, what) in [
        (summary.interrupted_requests, "requests had no response at the end"),
        (summary.dropped, "requests did not start: all connections were busy"),
        (summary.resent, "requests were sent again: the target had closed their connections"),
    ] {
        if amount > 0 {
            let _ = writeln!(text, "  {} {what}", count(amount));
        }
    }
    text.push('\n');
    let rows = [("latency", &summary.succeeded), ("first byte", &summary.first_byte), ("connect", &summary.connect)];
    let rows: Vec<_> = rows.into_iter().filter(|(_, times)| !times.histogram.is_empty()).collect();
    let head = ["ms", ">mean", ">min", ">p50", ">p90", ">p99", ">p99.9", ">max"];
    if !rows.is_empty() {
        text.push_str(&table(&head, rows, |(name, times)| [vec![name.to_owned()], figures(times)].concat()));
    }
    if summary.saturated {
        text.push_str("! The load generator was busy all the time: the target may be faster.\n");
    }
    if let Some(fault) = &summary.fault {
        let _ = writeln!(text, "! {fault}");
    }
    if summary.interrupted {
        text.push_str("! Interrupted.\n");
    }
    text
}

fn failures(summary: &Summary) -> String {
    let share = format::percent((summary.requests > 0).then(|| summary.failed as f64 / summary.requests as f64));
    let kinds = summary.errors.iter().map(|(kind, errors)| {
        let first = errors.first.as_ref().map(|first| format!(", e.g. {first}")).unwrap_or_default();
        format!("\n            {kind}: {}{first}", count(errors.count))
    });
    format!("{} ({}){}", count(summary.failed), share.text(), kinds.collect::<String>())
}

fn figures(times: &Distribution) -> Vec<String> {
    let Distribution { min_ns, max_ns, histogram } = times;
    let exact = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    let at = |q| {
        quantile(histogram, q).map(|ms| ms.clamp(exact(*min_ns).unwrap_or(0.0), exact(*max_ns).unwrap_or(f64::MAX)))
    };
    let all = [histogram.mean_ms(), exact(*min_ns), at(0.5), at(0.9), at(0.99), at(0.999), exact(*max_ns)];
    all.into_iter().map(|ms| format::number(ms).text().to_owned()).collect()
}

fn quantile(histogram: &Histogram, q: f64) -> Option<f64> {
    histogram.quantile(q).map(|quantile| quantile.estimate)
}

fn milliseconds(ms: Option<f64>) -> String {
    format::latency(ms).text().to_owned()
}

fn count(number: u64) -> String {
    format::count(Some(number)).text().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadCommand,
    }

    fn plan(line: &str) -> Result<Plan, String> {
        let line = Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace()));
        line.map_err(|fault| fault.to_string())?.load.plan().map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_url_is_a_plan() {
        let usual = plan("http://localhost:8080/a?b=1").expect("a plan");
        assert_eq!((usual.url.as_str(), usual.load.constant_vus()), ("http://localhost:8080", Some(USUAL_VUS)));
        assert_eq!(usual.list.requests[0].paths, ["/a?b=1"]);
        assert_eq!(usual.load.duration().map(|length| length.as_secs()), Some(10));
        let open =
            plan("http://localhost/ --rate 100 --duration 2s --max-vus 7 --poisson --http-version 2").expect("a plan");
        assert!(matches!(&open.load, Load::Open(open) if open.max_vus() == 7));
        assert_eq!((open.spacing, open.list.http), (Spacing::Poisson, HttpVersion::Two));
    }

    #[test]
    fn what_can_not_be_loaded_is_refused_with_its_flag() {
        for (line, why) in [
            ("http://localhost/ --rate 0", "--rate: between 1 and 1000000"),
            ("http://localhost/ --vus 1 --duration 1ms", "--duration: between 1 and 86400 seconds"),
            ("http://localhost/ --vus-stages 1s", "--vus-stages: stage 1"),
            ("missing.toml --url http://localhost", "missing.toml is no URL with a scheme and a host"),
            ("requests.toml", "--url: name the target"),
            ("http://localhost/ --vus 1 --rate 1", "cannot be used with"),
        ] {
            let fault = plan(line).expect_err(line);
            assert!(fault.contains(why), "{line}: {fault}");
        }
    }
}
