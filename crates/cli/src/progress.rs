//! Waits for an experiment with a progress bar on stderr.

use std::time::Duration;

use anyhow::bail;
use brewbench::{
    app::ids::ExperimentId,
    experiments::{
        model::ExperimentWithRuns,
        progress::{ExperimentState, Progress},
    },
};
use brewbench_io::client::Client;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;

use super::{duration, events::Events};

const STEPS: u64 = 1_000;
/// Consecutive failed attempts, one a second, before giving up: enough for a server to restart.
const MAX_FAILURES: u32 = 60;

/// Shows the progress of an experiment until it ends. Returns it with its runs.
pub async fn wait(client: &Client, experiment: &ExperimentId) -> anyhow::Result<ExperimentWithRuns> {
    let bar = ProgressBar::new(STEPS);
    let style = ProgressStyle::with_template("{bar:40} {prefix}\n{wide_msg}")?.progress_chars("━╸─");
    bar.set_style(style);
    let (mut failures, mut printed) = (0, None);
    loop {
        match follow(client, experiment, &bar, &mut printed).await {
            Ok(true) => break,
            Ok(false) => failures = 0,
            Err(fault) => {
                failures += 1;
                if failures > MAX_FAILURES {
                    bail!(fault);
                }
                bar.set_message(format!("{fault}; retrying"));
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    bar.finish_and_clear();
    Ok(client.get(&format!("api/v1/experiments/{experiment}")).await?)
}

/// Follows the events of one connection. Returns true when the experiment has ended.
async fn follow(
    client: &Client,
    experiment: &ExperimentId,
    bar: &ProgressBar,
    printed: &mut Option<usize>,
) -> anyhow::Result<bool> {
    let request = client.request(Method::GET, &format!("api/v1/experiments/{experiment}/events"));
    let mut events = Events::from_response(client.send(request).await?);
    while let Some(event) = events.next().await? {
        let progress: Progress = serde_json::from_str(&event.data)?;
        if bar.is_hidden() {
            print(&progress, printed);
        } else {
            show(&progress, bar);
        }
        if progress.is_over() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn show(progress: &Progress, bar: &ProgressBar) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 0 to 1")]
    bar.set_position((progress.share.clamp(0.0, 1.0) * STEPS as f64) as u64);
    let left = progress.remaining_s.map_or(String::new(), |left| format!(" · {} left", duration::text(left)));
    bar.set_prefix(format!("{}/{}{left}", progress.ended, progress.total));
    let idle = match progress.state {
        ExperimentState::Finished => "all runs have ended",
        ExperimentState::Paused => "paused; continue with `experiment resume`",
        ExperimentState::InProgress if progress.ended == progress.total => "deciding what to measure next",
        ExperimentState::InProgress => "waiting for an agent",
    };
    let now = progress.now.clone().unwrap_or_else(|| idle.to_owned());
    bar.set_message(now);
}

/// Without a terminal: one line per finished run instead of a bar.
fn print(progress: &Progress, printed: &mut Option<usize>) {
    if printed.replace(progress.ended) == Some(progress.ended) {
        return;
    }
    let left = progress.remaining_s.map_or(String::new(), |left| format!(", {} left", duration::text(left)));
    if progress.ended == progress.total && progress.state == ExperimentState::InProgress {
        eprintln!("{} runs finished, deciding what to measure next", progress.ended);
    } else {
        eprintln!("{} of {} runs finished{left}", progress.ended, progress.total);
    }
}
