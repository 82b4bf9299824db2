//! Bounds the work of a statement, whatever the data and the caller's input are: SQLite asks between its steps whether
//! to go on. Counts the CPU time of the thread, so that waiting for the disk or for other programs is no work.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rusqlite::Connection;

/// The most work of a search that anybody may ask for.
pub const MAX_WORK: Duration = Duration::from_millis(50);

/// Steps of SQLite's virtual machine between two questions, which take microseconds each.
const STEPS: i32 = 1_000;

/// Runs `work`; its statements fail with `SQLITE_INTERRUPT` once the thread has used `limit`.
pub fn limited<T>(connection: &Connection, limit: Duration, work: impl FnOnce(&Connection) -> T) -> T {
    let began = thread_time();
    let is_over = move || thread_time().saturating_sub(began) > limit;
    // Neither call fails on a connection of our own.
    let _ = connection.progress_handler(STEPS, Some(is_over));
    let result = work(connection);
    let _ = connection.progress_handler(0, None::<fn() -> bool>);
    result
}

/// Returns the CPU time that this thread has used.
fn thread_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    let times = [usage.user_time(), usage.system_time()];
    let micros = times.iter().map(|time| time.tv_sec() * 1_000_000 + time.tv_usec()).sum::<i64>();
    Duration::from_micros(micros.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n";

    #[test]
    fn endless_work_is_interrupted_and_the_connection_is_usable_afterwards() {
        let connection = Connection::open_in_memory().expect("a database");
        let run = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let interrupted = limited(&connection, Duration::from_millis(5), |_| run(ENDLESS)).expect_err("it never ends");
        assert_eq!(interrupted.sqlite_error_code(), Some(rusqlite::ErrorCode::OperationInterrupted));
        assert_eq!(run("select 1"), Ok(1));
    }
}
