//! Checks the state folder and its disk, the server and its certificate, the key, and the clock.

use std::fs;
use std::path::Path;
use std::time::Instant;

use brewbench_io::client::{Client, Fault};
use brewbench_wire::key::{Enrolled, ONE_TIME};
use brewbench_wire::now_ms;
use reqwest::{Method, StatusCode, header};

use super::certificate::PATIENCE;
use super::finding::{Finding, Rank};
use crate::connection::daemon::Options;
use crate::connection::key::Keys;
use crate::connection::link;
use crate::connection::state_folder;
use crate::host::disk::{self, TOO_LITTLE};

const MIB: u64 = 1 << 20;
/// A result takes a few kilobytes; long target logs and other files on the disk take more.
const LITTLE: u64 = 1024 * MIB;

/// The server marks results if the clock differs more. A `Date` header has whole seconds only.
const CLOCK_TOLERANCE_MS: i64 = 2_000;

pub(super) fn disk(state: &Path) -> Finding {
    let folder = state.display();
    if let Err(fault) = state_folder::make_private(state) {
        return Finding::bad("state folder", format!("{fault:#}"), "name another with --state");
    }
    let write_probe = || -> std::io::Result<()> {
        let probe = state.join(format!("doctor-{}", std::process::id()));
        fs::write(&probe, "room?")?;
        fs::remove_file(&probe)
    };
    if let Err(fault) = write_probe() {
        return Finding::bad("state folder", format!("can't write to {folder}: {fault}"), "name another with --state");
    }
    match disk::free(state) {
        Ok(free) => room(free, state),
        Err(fault) => {
            Finding::doubtful("state folder", format!("{folder}: {fault}"), "check the free space of its disk")
        }
    }
}

fn room(free: u64, state: &Path) -> Finding {
    let observed = format!("{} MiB free in {}", free / MIB, state.display());
    let remedy = "free disk space: results wait there until they are uploaded";
    match free {
        ..TOO_LITTLE => Finding::bad("state folder", observed, remedy),
        TOO_LITTLE..LITTLE => Finding::doubtful("state folder", observed, remedy),
        LITTLE.. => Finding::good("state folder", observed),
    }
}

/// Checks the server, the key and the clock.
pub(super) async fn server(options: &Options) -> Vec<Finding> {
    let keys = Keys::open(&options.state, options.key.as_deref());
    let secret = match &keys {
        Ok(keys) => keys.current().await,
        Err(_) => String::new(),
    };
    let client = match Client::with_trust(&options.server, Some(secret.clone()), &options.trust) {
        Ok(client) => client,
        Err(fault) => return vec![unreachable(&fault)],
    };
    let certificate = super::certificate::certificate(&client).await;
    if let Some(certificate) = certificate.clone().filter(|certificate| certificate.rank == Rank::Bad) {
        let skipped = "not checked: the certificate is not trusted, so the key is not sent";
        return vec![Finding::bad("server", skipped, "fix the certificate first"), certificate];
    }
    let clock = match clock_of(&client, "healthz").await {
        Ok(clock) => clock,
        Err(fault) => return vec![unreachable(&fault)],
    };
    let kind = if client.tls().is_some() { "answers" } else { "answers without TLS" };
    let mut findings = vec![Finding::good("server", format!("{} {kind}", client.base()))];
    findings.extend(certificate);
    findings.extend(clock);
    let key = match keys {
        Ok(_) => key(&client, &secret).await,
        Err(fault) => Finding::bad("key", fault.to_string(), "ask an administrator to create one on the Agents page"),
    };
    // A one-time key opens nothing but the exchange at the first start.
    let opens = key.rank == Rank::Good && !secret.starts_with(ONE_TIME);
    findings.push(key);
    if opens {
        findings.push(channel(&client).await);
    }
    findings
}

/// Checks that the connection for jobs opens, which a proxy may prevent.
async fn channel(client: &Client) -> Finding {
    match link::try_to_open(client).await {
        Ok(()) => Finding::good("WebSocket", "opens"),
        Err(reason) => Finding::bad(
            "WebSocket",
            reason,
            "let the proxy in front of the server pass WebSockets: its documentation calls it `Upgrade`",
        ),
    }
}

fn unreachable(fault: &Fault) -> Finding {
    Finding::bad("server", fault.to_string(), "fix --server, the network or the certificate, then check again")
}

/// Requests a page that everybody may read, and compares the clock of the server with the one here. None if the response
/// has no date.
pub async fn clock_of(client: &Client, path: &str) -> Result<Option<Finding>, Fault> {
    let sent = Instant::now();
    let answer = client.send(client.request(Method::GET, path).timeout(PATIENCE)).await?;
    let half_way_ms = i64::try_from(sent.elapsed().as_millis() / 2).unwrap_or(i64::MAX);
    let date = answer.headers().get(header::DATE).and_then(|date| date.to_str().ok()).and_then(unix_seconds);
    Ok(date.map(|seconds| clock(now_ms() - half_way_ms - seconds * 1_000)))
}

/// Checks a clock that is this far ahead of the start of the server's second.
fn clock(ahead_ms: i64) -> Finding {
    // The server's time is anywhere within its second.
    let off_ms = if ahead_ms >= 0 { (ahead_ms - 1_000).max(0) } else { -ahead_ms };
    if off_ms > CLOCK_TOLERANCE_MS {
        let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
        let observed = format!("{} s {way} the server's clock", off_ms / 1_000);
        return Finding::doubtful(
            "clock",
            observed,
            "synchronize it with NTP (systemd: timedatectl set-ntp true), here and on the server",
        );
    }
    Finding::good("clock", "same time as the server")
}

async fn key(client: &Client, secret: &str) -> Finding {
    if secret.starts_with(ONE_TIME) {
        return Finding::good("key", "a one-time key, exchanged at the first start");
    }
    let create_one = "create a key with `brewbench agent-key new NAME`";
    match client.json::<Enrolled>(client.request(Method::GET, "api/v1/agent/self").timeout(PATIENCE)).await {
        Ok(Enrolled { name }) => Finding::good("key", format!("the server knows this agent as {name}")),
        Err(Fault::Refused { status: StatusCode::UNAUTHORIZED, .. }) => {
            Finding::bad("key", "unknown to the server", create_one)
        }
        // The server's message says what to do.
        Err(Fault::Refused { sentence, .. }) => Finding::bad("key", sentence, "ask an administrator"),
        Err(fault) => Finding::bad("key", fault.to_string(), create_one),
    }
}

/// Parses an HTTP date, `Sun, 06 Nov 1994 08:49:37 GMT`, into unix seconds.
fn unix_seconds(date: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = date.split([' ', ':']).collect();
    let [_, day, month, year, hour, minute, second, "GMT"] = words[..] else { return None };
    let number = |text: &str| text.parse::<i64>().ok();
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let days = days(number(year)?, month, number(day)?);
    Some(((days * 24 + number(hour)?) * 60 + number(minute)?) * 60 + number(second)?)
}

/// Returns the days from 1970 to a later date. Years start in March, so that a leap day is the last day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_parsed() {
        assert_eq!(unix_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(unix_seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(unix_seconds("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        for bad in ["", "now", "Sun, 06 Foo 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"] {
            assert_eq!(unix_seconds(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_clock_is_doubtful_only_if_whole_seconds_do_not_explain_the_difference() {
        for fine in [-2_000, 0, 999, 2_900] {
            assert_eq!(clock(fine).rank, Rank::Good, "{fine}");
        }
        assert_eq!(clock(3_600_000).observed, "3599 s ahead of the server's clock");
        assert_eq!(clock(-3_600_000).observed, "3600 s behind the server's clock");
    }

    #[test]
    fn a_full_or_unwritable_folder_is_reported() {
        let folder = Path::new("/x");
        assert_eq!(room(8 << 30, folder).rank, Rank::Good);
        assert_eq!(room(512 * MIB, folder).rank, Rank::Doubtful);
        assert_eq!(room(MIB, folder).rank, Rank::Bad);
        assert_eq!(disk(Path::new("/proc/nowhere")).rank, Rank::Bad);
        let own = tempfile::tempdir().expect("a folder");
        assert_ne!(disk(&own.path().join("deep/below")).rank, Rank::Bad);
    }
}
