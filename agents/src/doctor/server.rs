//! The way home: the state folder and its disk, the server and its certificate, the key, and the clock.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use reqwest::{Method, StatusCode, header};

use super::{Rank, Sign};
use crate::connection::client::{Client, Fault};
use crate::connection::daemon::Options;
use crate::connection::key::{Enrolled, Keys, ONE_TIME};
use crate::connection::state_folder;
use crate::wire::now_ms;

const MIB: u64 = 1 << 20;
/// A result is some kilobytes; logs of a target that talks much, and other people's files, are more.
const LITTLE: u64 = 1024 * MIB;
/// Not even a few results are sure to find room.
const NOTHING: u64 = 64 * MIB;

/// How long a server may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The server marks results of a clock that is further off. A `Date` has no parts of a second.
const CLOCK_TOLERANCE_MS: i64 = 2_000;

pub(super) fn disk(state: &Path) -> Sign {
    let folder = state.display();
    if let Err(fault) = state_folder::make_private(state) {
        return Sign::bad("state folder", format!("{fault:#}"), "name another with --state");
    }
    let try_it = || -> std::io::Result<()> {
        let probe = state.join(format!("doctor-{}", std::process::id()));
        fs::write(&probe, "room?")?;
        fs::remove_file(&probe)
    };
    if let Err(fault) = try_it() {
        return Sign::bad("state folder", format!("{folder} can't be written: {fault}"), "name another with --state");
    }
    match statvfs(state) {
        Ok(disk) => room(disk.blocks_available() * disk.fragment_size(), state),
        Err(fault) => Sign::doubtful("state folder", format!("{folder}: {fault}"), "look whether its disk has room"),
    }
}

fn room(free: u64, state: &Path) -> Sign {
    let seen = format!("{} MiB free in {}", free / MIB, state.display());
    let remedy = "make room: results wait there until the server has them";
    match free {
        ..NOTHING => Sign::bad("state folder", seen, remedy),
        NOTHING..LITTLE => Sign::doubtful("state folder", seen, remedy),
        LITTLE.. => Sign::good("state folder", seen),
    }
}

/// The server, and what only it can tell: whether it knows the key, and what time it is.
pub(super) async fn server(options: &Options) -> Vec<Sign> {
    let keys = Keys::open(&options.state, options.key.as_deref());
    let secret = match &keys {
        Ok(keys) => keys.current().await,
        Err(_) => String::new(),
    };
    let client = match Client::trusting(&options.server, Some(secret.clone()), &options.trust) {
        Ok(client) => client,
        Err(fault) => return vec![unreached(&fault)],
    };
    let shown = super::certificate::certificate(&client).await;
    if let Some(shown) = shown.clone().filter(|shown| shown.rank == Rank::Bad) {
        let not_asked = "not asked: it would be shown the key, and its certificate is not trusted";
        return vec![Sign::bad("server", not_asked, "see to its certificate first"), shown];
    }
    let asked = Instant::now();
    let answer = client.send(client.request(Method::GET, "healthz").timeout(PATIENCE)).await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(fault) => return vec![unreached(&fault)],
    };
    let kind = if client.tls().is_some() { "answers" } else { "answers, without TLS" };
    let date = answer.headers().get(header::DATE).and_then(|date| date.to_str().ok()).and_then(seconds_of);
    let half_way_ms = i64::try_from(asked.elapsed().as_millis() / 2).unwrap_or(i64::MAX);
    let mut signs = vec![Sign::good("server", format!("{} {kind}", client.base()))];
    signs.extend(shown);
    signs.extend(date.map(|seconds| clock(now_ms() - half_way_ms - seconds * 1_000)));
    signs.push(match keys {
        Ok(_) => key(&client, &secret).await,
        Err(fault) => Sign::bad("key", fault.to_string(), "an administrator makes one on the page of agents"),
    });
    signs
}

fn unreached(fault: &Fault) -> Sign {
    Sign::bad("server", fault.to_string(), "mend --server, the network or the certificate; then look again")
}

/// A clock that is so much ahead of the beginning of the server's second.
fn clock(ahead_ms: i64) -> Sign {
    // The server's second may be anywhere between its beginning and its end.
    let off_ms = if ahead_ms >= 0 { (ahead_ms - 1_000).max(0) } else { -ahead_ms };
    if off_ms > CLOCK_TOLERANCE_MS {
        let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
        let seen = format!("{} s {way} the server's", off_ms / 1_000);
        return Sign::doubtful(
            "clock",
            seen,
            "let NTP set it (systemd: timedatectl set-ntp true), here and on the server",
        );
    }
    Sign::good("clock", "as the server's")
}

async fn key(client: &Client, secret: &str) -> Sign {
    if secret.starts_with(ONE_TIME) {
        return Sign::good("key", "a one-time key, to be exchanged at the first start");
    }
    let make_one = "`brewbench agent-key new NAME` makes a key";
    match client.json::<Enrolled>(client.request(Method::GET, "api/v1/agent/self").timeout(PATIENCE)).await {
        Ok(Enrolled { name }) => Sign::good("key", format!("the server knows this agent as {name}")),
        Err(Fault::Refused { status: StatusCode::UNAUTHORIZED, .. }) => {
            Sign::bad("key", "the server does not know it", make_one)
        }
        // Its sentence says what to do.
        Err(Fault::Refused { sentence, .. }) => Sign::bad("key", sentence, "ask an administrator"),
        Err(fault) => Sign::bad("key", fault.to_string(), make_one),
    }
}

/// Unix seconds of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds_of(date: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = date.split([' ', ':']).collect();
    let [_, day, month, year, hour, minute, second, "GMT"] = words[..] else { return None };
    let number = |text: &str| text.parse::<i64>().ok();
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let days = days(number(year)?, month, number(day)?);
    Some(((days * 24 + number(hour)?) * 60 + number(minute)?) * 60 + number(second)?)
}

/// Days since 1970 of a date after that. The year begins in March, so that the day that is sometimes missing is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(seconds_of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds_of("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds_of("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        for bad in ["", "now", "Sun, 06 Foo 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"] {
            assert_eq!(seconds_of(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_clock_is_doubted_where_no_part_of_the_servers_second_explains_it() {
        for fine in [-2_000, 0, 999, 2_900] {
            assert_eq!(clock(fine).rank, Rank::Good, "{fine}");
        }
        assert_eq!(clock(3_600_000).seen, "3599 s ahead of the server's");
        assert_eq!(clock(-3_600_000).seen, "3600 s behind the server's");
    }

    #[test]
    fn a_folder_without_room_or_leave_is_told() {
        let folder = Path::new("/x");
        assert_eq!(room(8 << 30, folder).rank, Rank::Good);
        assert_eq!(room(512 * MIB, folder).rank, Rank::Doubtful);
        assert_eq!(room(MIB, folder).rank, Rank::Bad);
        assert_eq!(disk(Path::new("/proc/nowhere")).rank, Rank::Bad);
        let own = tempfile::tempdir().expect("a folder");
        assert_ne!(disk(&own.path().join("deep/below")).rank, Rank::Bad);
    }
}
