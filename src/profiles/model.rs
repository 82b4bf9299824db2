//! Profiles and their comparison for JSON, pages and commands. Pure.

use brewbench_wire::profile::{ProfileKind, ProfileQuality, ProfileSource};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::store::StoredProfile;
use crate::app::ids::RunId;
use crate::profiles::stacks::Unit;

/// Which profile is requested. Runs of one cell are added.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ProfileQuery {
    /// Ids of profiled runs of one cell, separated by commas.
    #[serde(default)]
    pub runs: String,
    /// `cpu`, `heap` or `allocs`. Default: `cpu`.
    pub kind: Option<String>,
    /// Maximum number of functions. Default: 20.
    pub limit: Option<usize>,
}

/// Which profiles are compared.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CompareQuery {
    /// Ids of the baseline's profiled runs, separated by commas.
    #[serde(default)]
    pub baseline: String,
    /// Ids of the candidate's profiled runs, separated by commas.
    #[serde(default)]
    pub candidate: String,
    /// `cpu`, `heap` or `allocs`. Default: `cpu`.
    pub kind: Option<String>,
    /// Maximum number of functions. Default: 20.
    pub limit: Option<usize>,
    /// Compare even if more than the target differs.
    #[serde(default)]
    pub allow_confounders: bool,
}

impl CompareQuery {
    /// Returns the page that compares two cells.
    pub fn href(&self) -> String {
        format!("/profiles/compare?baseline={}&candidate={}", self.baseline, self.candidate)
    }
}

/// Default of `limit`.
pub const FUNCTIONS: usize = 20;

/// How values are shown: in a unit that needs few zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The unit.
    pub unit: &'static str,
    /// Factor from the tree's unit.
    pub factor: f64,
}

impl Scale {
    /// Returns the scale of a kind of profile.
    pub fn new(kind: ProfileKind, unit: Unit) -> Self {
        match (kind, unit) {
            (_, Unit::Percent) => Self { unit: "%", factor: 1.0 },
            (ProfileKind::Cpu, Unit::MsPerRequest) => Self { unit: "ms per 1,000 requests", factor: 1_000.0 },
            (ProfileKind::Heap | ProfileKind::Allocs, Unit::MsPerRequest) => {
                Self { unit: "KiB", factor: 1.0 / 1_024.0 }
            }
        }
    }
}

/// One profile of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProfileInfo {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// `cpu`, `heap` or `allocs`.
    #[schema(value_type = String)]
    pub kind: ProfileKind,
    /// `pprof`, `perf` or `command`.
    #[schema(value_type = String)]
    pub source: ProfileSource,
    /// The profiler and its version, e.g. `perf 6.1`.
    pub profiler: Option<String>,
    /// Length of the observation, seconds.
    pub duration_s: Option<f64>,
    /// Number of samples.
    pub samples: u64,
    /// Samples that the profiler lost; null if it does not say.
    pub lost: Option<u64>,
    /// Requested samples per second of CPU time.
    pub rate_hz: Option<f64>,
    /// Share of the total in functions without a name, 0 to 1.
    pub unknown_share: f64,
    /// Share of the total in stacks of at most two frames, 0 to 1.
    pub shallow_share: f64,
    /// Share of the total that was folded into larger frames to limit the size, 0 to 1.
    pub trimmed_share: f64,
    /// What limits the profile, as sentences.
    pub notes: Vec<String>,
    /// Whether retention has deleted the stacks.
    pub is_deleted: bool,
}

impl From<&StoredProfile> for ProfileInfo {
    fn from(stored: &StoredProfile) -> Self {
        let StoredProfile { run, kind, source, quality, body } = stored;
        let ProfileQuality {
            profiler,
            duration_ms,
            samples,
            lost,
            rate_hz,
            unknown_share,
            shallow_share,
            trimmed_share,
            notes,
        } = quality.clone();
        Self {
            run: run.clone(),
            kind: *kind,
            source: *source,
            profiler,
            duration_s: duration_ms.map(|ms| ms as f64 / 1_000.0),
            samples,
            lost,
            rate_hz,
            unknown_share,
            shallow_share,
            trimmed_share,
            notes,
            is_deleted: body.is_none(),
        }
    }
}

/// The profile of a cell: the mean over its profiled runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProfileTable {
    /// `cpu`, `heap` or `allocs`.
    #[schema(value_type = String)]
    pub kind: ProfileKind,
    /// Name of the target.
    pub target: String,
    /// Version of the target.
    pub version: Option<String>,
    /// Unit of all values: `ms per 1,000 requests`, `KiB`, or `%` if the total is unknown.
    pub unit: String,
    /// The total.
    pub total: f64,
    /// The functions with the largest values of their own.
    pub functions: Vec<FunctionRow>,
    /// Number of functions with any samples.
    pub functions_in_total: usize,
    /// The profiles.
    pub profiles: Vec<ProfileInfo>,
    /// What the profiler costs: profiled runs relative to the other repetitions of the cell.
    pub overhead: Vec<Overhead>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FunctionRow {
    /// Its normalised name.
    pub function: String,
    /// Its package, or the program or library that contains it.
    pub package: String,
    /// Without what it calls.
    pub own: f64,
    /// With everything it calls.
    pub total: f64,
    /// `own` as a share of the total, 0 to 1.
    pub own_share: f64,
    /// `total` as a share of the total, 0 to 1.
    pub total_share: f64,
}

/// A metric of profiled runs relative to that of the measured repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overhead {
    /// Key of the metric: CPU time per request or throughput.
    pub metric: String,
    /// 0.03 is 3 % more with the profiler.
    pub change: f64,
    /// Lower end of the 95 % confidence interval; null with too few repetitions.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// One side of a comparison of profiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProfileSide {
    /// Name of the target.
    pub target: String,
    /// Version of the target.
    pub version: Option<String>,
    /// The name that distinguishes both sides.
    pub label: String,
    /// The profiles.
    pub profiles: Vec<ProfileInfo>,
    /// Mean of the total.
    pub total: f64,
    /// What the profiler costs.
    pub overhead: Vec<Overhead>,
}

/// Where two cells differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProfileComparison {
    /// `cpu`, `heap` or `allocs`.
    #[schema(value_type = String)]
    pub kind: ProfileKind,
    /// Unit of all values: `ms per 1,000 requests`, `KiB`, or `%` if a total is unknown.
    pub unit: String,
    /// What differs between both sides besides the target; nothing is concluded from such a comparison.
    pub confounders: Vec<String>,
    /// The result in sentences.
    pub headline: Vec<String>,
    /// The baseline.
    pub baseline: ProfileSide,
    /// The candidate.
    pub candidate: ProfileSide,
    /// Difference of the total; null if a total is unknown.
    pub difference: Option<Delta>,
    /// The functions, the largest significant differences of their own time first.
    pub functions: Vec<FunctionChange>,
    /// Number of functions on either side.
    pub functions_in_total: usize,
    /// Number of questions that the p-values are corrected for.
    pub questions: usize,
    /// Fewest profiled repetitions a side with which a difference can be shown at all.
    pub fewest: usize,
}

/// A function on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FunctionChange {
    /// Its normalised name.
    pub function: String,
    /// Its package, or the program or library that contains it.
    pub package: String,
    /// `both`, `new` or `vanished`.
    pub presence: String,
    /// Without what it calls.
    pub own: Delta,
    /// With everything it calls.
    pub total: Delta,
}

/// A value on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Delta {
    /// Mean of the baseline.
    pub baseline: f64,
    /// Mean of the candidate.
    pub candidate: f64,
    /// Candidate minus baseline.
    pub difference: f64,
    /// Lower end of the 95 % confidence interval, corrected for all questions; null if it is too small to be tested, or
    /// with too few runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// p-value, corrected for all questions; null if it is too small to be tested.
    pub p: Option<f64>,
    /// Whether a difference is shown.
    pub is_significant: bool,
}
