//! `brewbench run watch`: follows a run and shows its result.

mod screen;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use brewbench::{
    app::ids::RunId,
    live::status::{PointsBody, RunNow},
    results::series::model::{SecondBody, UsageBody},
    runs::model::{Run, RunList},
};
use brewbench_io::client::{Client, Fault};
use reqwest::{Method, header::HeaderName};
use serde::Serialize;

use self::screen::Screen;
use crate::{
    events::{Event, Events},
    exit_code::judge_runs,
    run::which::{OneRun, full_id},
    table,
};

/// Consecutive failed attempts, one a second, before giving up: enough for a server to restart.
const MAX_FAILURES: u32 = 60;

/// A line of `--json`: one sample, or finally the run.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum JsonLine<'a> {
    Second {
        phase: &'a str,
        #[serde(flatten)]
        second: &'a SecondBody,
    },
    Usage {
        phase: &'a str,
        #[serde(flatten)]
        usage: &'a UsageBody,
    },
    Run(&'a Run),
}

impl OneRun {
    /// Follows the run until it ends.
    pub async fn watch(self) -> anyhow::Result<ExitCode> {
        let connection = self.common.connect()?;
        let id = full_id(&connection, &self.id).await?;
        let screen = (!self.common.json).then(Screen::new).transpose()?;
        let run =
            Watcher { screen, last_event: None, second_s: f64::MIN, sample_s: f64::MIN }.watch(&connection.client, &id);
        let run = run.await?;
        if self.common.json {
            print(&JsonLine::Run(&run))?;
        } else {
            print!("{}", table::runs(std::slice::from_ref(&run)));
        }
        Ok(judge_runs(&[run]))
    }
}

/// Follows a run over several connections.
struct Watcher {
    /// The terminal; `None` prints JSON lines.
    screen: Option<Screen>,
    /// Id of the last event.
    last_event: Option<String>,
    /// End of the last second shown: a restarted server sends earlier ones again.
    second_s: f64,
    sample_s: f64,
}

impl Watcher {
    async fn watch(mut self, client: &Client, id: &RunId) -> anyhow::Result<Run> {
        let mut failures = 0;
        loop {
            match self.follow(client, id).await {
                Ok(Some(run)) => return Ok(run),
                Ok(None) => failures = 0,
                Err(fault) => {
                    failures += 1;
                    let refused =
                        matches!(fault.downcast_ref(), Some(Fault::Refused { status, .. }) if status.is_client_error());
                    if refused || failures > MAX_FAILURES {
                        bail!(fault);
                    }
                    if let Some(screen) = &mut self.screen {
                        screen.error(&format!("{fault}; retrying"));
                    }
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Follows one connection. Returns the run if it has ended.
    async fn follow(&mut self, client: &Client, id: &RunId) -> anyhow::Result<Option<Run>> {
        let mut request = client.request(Method::GET, &format!("api/v1/runs/{id}/series/live"));
        if let Some(last_event) = &self.last_event {
            request = request.header(HeaderName::from_static("last-event-id"), last_event);
        }
        let mut events = Events::from_response(client.send(request).await?);
        let mut clock = tokio::time::interval(Duration::from_secs(1));
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                _ = clock.tick(), if self.screen.is_some() => {
                    self.screen.iter_mut().for_each(Screen::tick);
                    continue;
                }
            };
            let Some(event) = event else { return Ok(None) };
            if let Some(run) = self.handle(&event)? {
                return Ok(Some(run));
            }
            self.last_event = event.id.or(self.last_event.take());
        }
    }

    fn handle(&mut self, event: &Event) -> anyhow::Result<Option<Run>> {
        match event.name.as_str() {
            "phase" => {
                let now: RunNow = serde_json::from_str(&event.data)?;
                if let Some(screen) = &mut self.screen {
                    screen.phase(now);
                }
            }
            "points" => self.points(&serde_json::from_str(&event.data)?)?,
            "end" => {
                let list: RunList = serde_json::from_str(&event.data)?;
                return Ok(Some(list.runs.into_iter().next().context("the server sent no result of the run")?));
            }
            // Sent by a newer server.
            _ => {}
        }
        Ok(None)
    }

    fn points(&mut self, points: &PointsBody) -> anyhow::Result<()> {
        let phase = points.phase.as_str();
        // Usage first: the line of a second shows both.
        for usage in points.usage.iter().filter(|usage| usage.at_s > self.sample_s) {
            match &mut self.screen {
                Some(screen) => screen.usage(usage),
                None => print(&JsonLine::Usage { phase, usage })?,
            }
        }
        for second in points.seconds.iter().filter(|second| second.at_s > self.second_s) {
            match &mut self.screen {
                Some(screen) => screen.second(second),
                None => print(&JsonLine::Second { phase, second })?,
            }
        }
        self.sample_s = points.usage.last().map_or(self.sample_s, |usage| usage.at_s.max(self.sample_s));
        self.second_s = points.seconds.last().map_or(self.second_s, |second| second.at_s.max(self.second_s));
        Ok(())
    }
}

fn print(line: &JsonLine) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}
