//! `brewbench run watch`: a run as it goes on, and what came of it.

mod screen;

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use brewbench_agent::connection::client::{Client, Fault};
use reqwest::{Method, header::HeaderName};
use serde::Serialize;

use self::screen::Screen;
use crate::{
    app::ids::RunId,
    cli::{
        events::{Event, Events},
        exit_code::judge_runs,
        run::which::{One, full_id},
        table,
    },
    live::status::{PointsBody, RunNow},
    results::series::model::{SecondBody, UsageBody},
    runs::model::{Run, RunList},
};

/// A server that starts anew takes this many seconds at most before it is asked again.
const PATIENCE: u32 = 60;

/// A line of JSON: one point, or the run at its end.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Told<'a> {
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

impl One {
    /// Shows how it goes until its end.
    pub async fn watch(self) -> anyhow::Result<ExitCode> {
        let connection = self.common.connect()?;
        let id = full_id(&connection, &self.id).await?;
        let screen = (!self.common.json).then(Screen::new).transpose()?;
        let run =
            Watcher { screen, heard: None, second_s: f64::MIN, sample_s: f64::MIN }.watch(&connection.client, &id);
        let run = run.await?;
        if self.common.json {
            print(&Told::Run(&run))?;
        } else {
            print!("{}", table::runs(std::slice::from_ref(&run)));
        }
        Ok(judge_runs(&[run]))
    }
}

/// Somebody who watches a run, over as many connections as it takes.
struct Watcher {
    /// For people; without one there are lines of JSON.
    screen: Option<Screen>,
    /// The id of the last event.
    heard: Option<String>,
    /// Up to here seconds were shown: a server that was started anew tells them again.
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
                    if refused || failures > PATIENCE {
                        bail!(fault);
                    }
                    if let Some(screen) = &mut self.screen {
                        screen.trouble(&format!("{fault}; trying again"));
                    }
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Follows one connection; gives the run if it has ended.
    async fn follow(&mut self, client: &Client, id: &RunId) -> anyhow::Result<Option<Run>> {
        let mut request = client.request(Method::GET, &format!("api/v1/runs/{id}/series/live"));
        if let Some(heard) = &self.heard {
            request = request.header(HeaderName::from_static("last-event-id"), heard);
        }
        let mut events = Events::of(client.send(request).await?);
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
            if let Some(run) = self.take(&event)? {
                return Ok(Some(run));
            }
            self.heard = event.id.or(self.heard.take());
        }
    }

    fn take(&mut self, event: &Event) -> anyhow::Result<Option<Run>> {
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
                return Ok(Some(list.runs.into_iter().next().context("the server does not say what came of it")?));
            }
            // Of a newer server.
            _ => {}
        }
        Ok(None)
    }

    fn points(&mut self, points: &PointsBody) -> anyhow::Result<()> {
        let phase = points.phase.as_str();
        // What was used first: a line on the screen has both.
        for usage in points.usage.iter().filter(|usage| usage.at_s > self.sample_s) {
            match &mut self.screen {
                Some(screen) => screen.usage(usage),
                None => print(&Told::Usage { phase, usage })?,
            }
        }
        for second in points.seconds.iter().filter(|second| second.at_s > self.second_s) {
            match &mut self.screen {
                Some(screen) => screen.second(second),
                None => print(&Told::Second { phase, second })?,
            }
        }
        self.sample_s = points.usage.last().map_or(self.sample_s, |usage| usage.at_s.max(self.sample_s));
        self.second_s = points.seconds.last().map_or(self.second_s, |second| second.at_s.max(self.second_s));
        Ok(())
    }
}

fn print(told: &Told) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(told)?);
    Ok(())
}
