//! A row of the table `run` as a [`Run`].

use crate::{
    catalog::model::Engine,
    metrics::Figures,
    runs::{
        load,
        model::{Origin, Run, RunEnforced, RunSize},
        work::RunWork,
    },
};

/// A row of `run`, column by column. Its ids are text, because `select *` cannot give columns other types.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct RunRow {
    /// Order of submission.
    pub seq: i64,
    /// The run's id.
    pub id: String,
    pub(crate) experiment_id: Option<String>,
    pub(crate) retry_of: Option<String>,
    pub(crate) origin: String,
    pub(crate) target: String,
    pub(crate) version: Option<String>,
    pub(crate) target_sha256: Option<String>,
    pub(crate) size_name: Option<String>,
    pub(crate) vcpus: Option<f64>,
    pub(crate) memory_bytes: Option<i64>,
    pub(crate) scenario: Option<String>,
    pub(crate) scenario_sha256: Option<String>,
    pub(crate) parameters: String,
    pub(crate) vus: Option<i64>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) warm_up_ms: Option<i64>,
    pub(crate) repetition: i64,
    pub(crate) created_by: String,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    pub(crate) wanted_agent: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) phase: String,
    pub(crate) queued_at: i64,
    pub(crate) phase_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) finished_at: Option<i64>,
    pub(crate) error: Option<String>,
    pub(crate) verdict: Option<String>,
    pub(crate) reasons: String,
    pub(crate) requests: Option<i64>,
    pub(crate) failed: Option<i64>,
    pub(crate) rps: Option<f64>,
    pub(crate) measured_ms: Option<f64>,
    pub(crate) avg_ms: Option<f64>,
    pub(crate) min_ms: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p999_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    pub(crate) data_received_bytes: Option<f64>,
    pub(crate) data_sent_bytes: Option<f64>,
    pub(crate) iterations: Option<i64>,
    pub(crate) dropped_iterations: Option<i64>,
    pub(crate) checks_passed: Option<i64>,
    pub(crate) checks_failed: Option<i64>,
    pub(crate) thresholds: Option<i64>,
    pub(crate) thresholds_failed: Option<i64>,
    pub(crate) enforced_cpu: Option<String>,
    pub(crate) enforced_memory: Option<String>,
    pub(crate) engine_version: Option<String>,
    pub(crate) engine_name: Option<String>,
    #[expect(dead_code, reason = "name and version in one, for queries; here all columns come along")]
    pub(crate) engine: Option<String>,
    pub(crate) labels: String,
    pub(crate) note: Option<String>,
    #[expect(dead_code, reason = "who asks leaves deleted runs out; here all columns come along")]
    pub(crate) deleted_at: Option<i64>,
    #[expect(dead_code, reason = "only the way back asks for it; here all columns come along")]
    pub(crate) deleted_by: Option<String>,
    pub(crate) load: Option<String>,
    #[expect(dead_code, reason = "only what repeats a run asks for it; here all columns come along")]
    pub(crate) retries: i64,
    pub(crate) target_cpu_us: Option<i64>,
    pub(crate) target_memory_bytes: Option<i64>,
    pub(crate) received_per_s: Option<f64>,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    pub(crate) priority: i64,
    pub(crate) generators: String,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    pub(crate) agent_label: Option<String>,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    pub(crate) block: i64,
    pub(crate) in_turn: Option<i64>,
    #[expect(dead_code, reason = "queries compare it; here all columns come along")]
    pub(crate) plan_key: Option<String>,
    #[expect(dead_code, reason = "queries compare it; here all columns come along")]
    pub(crate) cell_key: Option<String>,
    pub(crate) least_new_connections: Option<i64>,
    pub(crate) most_new_connections: Option<i64>,
    pub(crate) statuses: Option<String>,
    pub(crate) protocols: Option<String>,
    pub(crate) warm_up_auto: i64,
    pub(crate) warmed_up_ms: Option<i64>,
    pub(crate) warm_up_steady: Option<i64>,
    pub(crate) throttled_share: Option<f64>,
    pub(crate) startup_ms: Option<f64>,
    pub(crate) idle_memory_bytes: Option<i64>,
}

pub(crate) fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

pub(crate) fn whole<T: TryFrom<i64, Error: Into<Box<dyn std::error::Error + Send + Sync>>>>(
    value: Option<i64>,
) -> sqlx::Result<Option<T>> {
    value.map(T::try_from).transpose().map_err(decode)
}

#[expect(clippy::too_many_lines, reason = "one line a column: the list is the point")]
impl TryFrom<RunRow> for Run {
    type Error = sqlx::Error;

    fn try_from(row: RunRow) -> sqlx::Result<Self> {
        let RunRow {
            seq: _,
            id,
            experiment_id,
            retry_of,
            origin,
            target,
            version,
            target_sha256,
            size_name,
            vcpus,
            memory_bytes,
            scenario,
            scenario_sha256,
            parameters,
            vus,
            duration_ms,
            warm_up_ms,
            repetition,
            created_by,
            wanted_agent: _,
            agent,
            phase,
            queued_at,
            phase_at,
            started_at,
            finished_at,
            error,
            verdict,
            reasons,
            requests,
            failed,
            rps,
            measured_ms,
            avg_ms,
            min_ms,
            p50_ms,
            p90_ms,
            p95_ms,
            p99_ms,
            p999_ms,
            max_ms,
            data_received_bytes,
            data_sent_bytes,
            iterations,
            dropped_iterations,
            checks_passed,
            checks_failed,
            thresholds,
            thresholds_failed,
            enforced_cpu,
            enforced_memory,
            engine_version,
            engine_name,
            engine: _,
            labels,
            note,
            deleted_at: _,
            deleted_by: _,
            load,
            retries: _,
            target_cpu_us,
            target_memory_bytes,
            received_per_s,
            priority: _,
            generators,
            agent_label: _,
            block: _,
            in_turn,
            plan_key: _,
            cell_key: _,
            least_new_connections,
            most_new_connections,
            statuses,
            protocols,
            warm_up_auto,
            warmed_up_ms,
            warm_up_steady,
            throttled_share,
            startup_ms,
            idle_memory_bytes,
        } = row;
        let origin = if origin == "import" { Origin::Import } else { Origin::Agent };
        let size = match (size_name, vcpus, memory_bytes) {
            (Some(name), Some(vcpus), Some(memory)) => {
                Some(RunSize { name, vcpus, memory_bytes: u64::try_from(memory).map_err(decode)? })
            }
            _ => None,
        };
        let (requests, failed) = (whole::<u64>(requests)?, whole::<u64>(failed)?);
        let counts = |text: Option<String>| text.as_deref().map(serde_json::from_str).transpose().map_err(decode);
        Ok(Self {
            id: id.into(),
            experiment: experiment_id.map(Into::into),
            retry_of: retry_of.map(Into::into),
            labels: serde_json::from_str(&labels).map_err(decode)?,
            note,
            origin,
            in_turn: in_turn.map_or(origin == Origin::Agent, |is| is == 1),
            target,
            version,
            size,
            scenario,
            scenario_sha256,
            parameters: serde_json::from_str(&parameters).map_err(decode)?,
            load: load.as_deref().map(load::read).transpose().map_err(decode)?,
            vus: whole(vus)?,
            repetition: u32::try_from(repetition).map_err(decode)?,
            phase: phase.parse().map_err(decode)?,
            verdict: verdict.map(|text| text.parse()).transpose().map_err(|fault: String| decode(fault))?,
            reasons: serde_json::from_str(&reasons).map_err(decode)?,
            error,
            figures: Figures {
                error_rate: requests
                    .zip(failed)
                    .filter(|(of, _)| *of > 0)
                    .map(|(of, failed)| failed as f64 / of as f64),
                cpu_ms_per_request: requests
                    .zip(target_cpu_us)
                    .filter(|(of, _)| *of > 0)
                    .map(|(of, us)| us as f64 / 1_000.0 / of as f64),
                target_memory_bytes: whole(target_memory_bytes)?,
                requests,
                failed,
                rps,
                avg_ms,
                min_ms,
                p50_ms,
                p90_ms,
                p95_ms,
                p99_ms,
                p999_ms,
                max_ms,
                measured_s: measured_ms.map(|ms| ms / 1_000.0),
                throttled_share,
                startup_ms,
                idle_memory_bytes: whole(idle_memory_bytes)?,
                data_received_bytes,
                data_sent_bytes,
                received_per_s: received_per_s.or_else(|| {
                    let seconds = measured_ms.filter(|ms| *ms > 0.0).map(|ms| ms / 1_000.0);
                    data_received_bytes.zip(seconds).map(|(bytes, seconds)| bytes / seconds)
                }),
            },
            iterations: whole(iterations)?,
            dropped_iterations: whole(dropped_iterations)?,
            work: RunWork::new(requests, whole(iterations)?, data_received_bytes)
                .with_connections(whole(least_new_connections)?, whole(most_new_connections)?, requests)
                .with_counts(counts(statuses)?, counts(protocols)?),
            checks_passed: whole(checks_passed)?,
            checks_failed: whole(checks_failed)?,
            thresholds: whole(thresholds)?,
            thresholds_failed: whole(thresholds_failed)?,
            warm_up_s: warm_up_ms.map(|ms| ms as f64 / 1_000.0),
            warm_up_auto: warm_up_auto != 0,
            warmed_up_s: warmed_up_ms.map(|ms| ms as f64 / 1_000.0),
            warm_up_steady: warm_up_steady.map(|steady| steady != 0),
            duration_s: duration_ms.map(|ms| ms as f64 / 1_000.0),
            enforced: enforced_cpu.zip(enforced_memory).map(|(cpu, memory)| RunEnforced { cpu, memory }),
            agent,
            generators: serde_json::from_str(&generators).map_err(decode)?,
            engine: engine_name.map(|name| Engine { name, version: engine_version }),
            target_sha256,
            created_by,
            queued_at_ms: queued_at,
            phase_at_ms: phase_at,
            started_at_ms: started_at,
            finished_at_ms: finished_at,
        })
    }
}

pub(crate) fn runs(rows: Vec<RunRow>) -> sqlx::Result<Vec<Run>> {
    rows.into_iter().map(Run::try_from).collect()
}
