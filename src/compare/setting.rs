//! The settings of a comparison, with labels that distinguish them. Pure.

use std::{cmp::Ordering, collections::BTreeMap};

use brewbench_wire::target::TargetKind;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    compare::selection::{By, key, load_of, peak},
    runs::{
        code::{code_of, describe_code},
        model::{Run, RunSize, RunSpec},
    },
    web::format,
};

/// The setting that runs must share to be comparable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// What distinguishes it from the other settings; the full setting if it is the only one.
    pub label: String,
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// Hash of the scenario's revision.
    pub scenario_sha256: Option<String>,
    /// Parameters of the scenario.
    pub parameters: BTreeMap<String, String>,
    /// Description of the load, without the duration of a constant load; null if unknown.
    pub load: Option<String>,
    /// Virtual users, if constant.
    pub vus: Option<u32>,
    /// Peak of the load, by which settings are sorted; 0 if unknown.
    pub peak: u32,
    /// The machine size.
    pub size: Option<RunSize>,
    /// Target and version, unless these are compared.
    #[serde(default)]
    pub target: Option<String>,
    /// What identifies the code of the target, if its sizes or loads are compared; null if unknown.
    #[serde(default)]
    pub code: Option<String>,
    /// What is compared and therefore not part of the setting.
    #[serde(default)]
    pub by: By,
}

/// Returns the settings of runs with their keys, in order.
pub(crate) fn settings(runs: &[Run], by: By) -> (Vec<String>, Vec<Setting>) {
    let mut all: Vec<(String, Setting)> = Vec::new();
    if by == By::Run {
        let both = runs.iter().map(|run| setting_of(run, by)).reduce(|one, other| one.in_common(&other));
        all.extend(both.map(|both| (String::new(), both)));
    }
    for run in runs.iter().filter(|_| by != By::Run) {
        let key = setting_key(run, by);
        if !all.iter().any(|(known, _)| *known == key) {
            all.push((key, setting_of(run, by)));
        }
    }
    all.sort_by(|(_, one), (_, other)| order(one, other));
    let (keys, mut all): (Vec<String>, Vec<Setting>) = all.into_iter().unzip();
    let labels: Vec<String> = all.iter().map(|setting| label(setting, &all)).collect();
    for (setting, label) in all.iter_mut().zip(labels) {
        setting.label = label;
    }
    (keys, all)
}

impl Setting {
    /// What two settings share.
    fn in_common(self, other: &Self) -> Self {
        fn same<T: PartialEq + Default>(one: T, other: &T) -> T {
            if one == *other { one } else { T::default() }
        }
        Self {
            label: String::new(),
            scenario: same(self.scenario, &other.scenario),
            scenario_sha256: same(self.scenario_sha256, &other.scenario_sha256),
            parameters: same(self.parameters, &other.parameters),
            load: same(self.load, &other.load),
            vus: same(self.vus, &other.vus),
            peak: same(self.peak, &other.peak),
            size: same(self.size, &other.size),
            target: same(self.target, &other.target),
            code: same(self.code, &other.code),
            by: self.by,
        }
    }
}

pub(crate) fn setting_of(run: &Run, by: By) -> Setting {
    let has_load = by != By::Load;
    Setting {
        label: String::new(),
        target: target_of(run, by),
        code: code_of_setting(run, by),
        by,
        scenario: run.spec.scenario.clone(),
        scenario_sha256: run.spec.scenario_sha256.clone(),
        parameters: run.spec.parameters.clone(),
        load: load_of(run).filter(|_| has_load),
        vus: run.spec.vus.filter(|_| has_load),
        peak: if has_load { peak(run) } else { 0 },
        size: run.spec.size.clone().filter(|_| by != By::Size),
    }
}

/// Returns what identifies the setting of a run: its plan key without what is compared. Where load comes from makes
/// runs not comparable, but no other setting.
pub(crate) fn setting_key(run: &Run, by: By) -> String {
    if by == By::Run {
        return String::new();
    }
    let size = run.spec.size.clone().filter(|_| by != By::Size);
    let spec = if by == By::Load { run.spec.clone().without_load() } else { run.spec.clone() };
    let spec = RunSpec { target: String::new(), size, cluster_generators: 0, ..spec };
    json!([spec.plan_key(), target_of(run, by), code_of_setting(run, by)]).to_string()
}

/// Returns target and version, with any kind but the usual one; `None` if these are compared.
fn target_of(run: &Run, by: By) -> Option<String> {
    let target = (by != By::Target).then(|| key(run, By::Target))?;
    Some(match run.target_kind {
        Some(TargetKind::Process) | None => target,
        Some(kind) => format!("{target} ({kind})"),
    })
}

/// Returns the code of the target. Agents and labels may differ in theirs: `comparability` looks at each of them.
fn code_of_setting(run: &Run, by: By) -> Option<String> {
    code_of(run).filter(|_| matches!(by, By::Size | By::Load))
}

/// Orders settings. Sizes are equal if their cores and memory are, whatever their names.
fn order(one: &Setting, other: &Setting) -> Ordering {
    let rest = |setting: &Setting| {
        let load = (setting.vus, setting.peak, setting.load.clone());
        let script = (setting.scenario.clone(), setting.scenario_sha256.clone(), setting.parameters.clone());
        (setting.target.clone(), script, load, setting.code.clone())
    };
    let cores = |setting: &Setting| setting.size.as_ref().map_or(0.0, RunSize::total_vcpus);
    let memory = |setting: &Setting| setting.size.as_ref().map(|size| (size.total_memory_bytes(), size.replicas));
    rest(one).cmp(&rest(other)).then(cores(one).total_cmp(&cores(other))).then(memory(one).cmp(&memory(other)))
}

/// Returns scenario, revision, parameters, load, size, target and code as text; empty for what is compared.
pub(crate) fn parts(setting: &Setting) -> [String; 7] {
    let but = |by: By, part: String| if setting.by == by { String::new() } else { part };
    // What single runs do not share is part of their names.
    let unknown = |what: &str| if setting.by == By::Run { String::new() } else { format!("unknown {what}") };
    let parameters: Vec<String> = setting.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let short = |sha: &String| format!("revision {}", sha.chars().take(8).collect::<String>());
    let vus = |vus: u32| {
        let unit = if vus == 1 { "VU" } else { "VUs" };
        format!("{} {unit}", format::count(Some(u64::from(vus))).text())
    };
    [
        setting.scenario.clone().unwrap_or_else(|| unknown("scenario")),
        setting.scenario_sha256.as_ref().map_or_else(|| unknown("revision"), short),
        if parameters.is_empty() { "no parameters".to_owned() } else { parameters.join(" ") },
        but(By::Load, setting.load.clone().or_else(|| setting.vus.map(vus)).unwrap_or_else(|| unknown("load"))),
        but(By::Size, setting.size.as_ref().map_or_else(|| unknown("size"), |size| size.name.clone())),
        setting.target.clone().unwrap_or_default(),
        setting.code.as_deref().map(|code| describe_code(Some(code))).unwrap_or_default(),
    ]
}

/// Whether settings differ only in the machine size.
pub fn only_sizes_differ(all: &[&Setting]) -> bool {
    let but_size = |setting: &Setting| {
        let [scenario, revision, parameters, load, _, target, code] = parts(setting);
        [scenario, revision, parameters, load, target, code]
    };
    all.windows(2).all(|pair| but_size(pair[0]) == but_size(pair[1]))
}

/// Whether settings differ only in the load.
pub fn only_loads_differ(all: &[&Setting]) -> bool {
    let but_load = |setting: &Setting| {
        let [scenario, revision, parameters, _, size, target, code] = parts(setting);
        [scenario, revision, parameters, size, target, code]
    };
    all.windows(2).all(|pair| but_load(pair[0]) == but_load(pair[1]))
}

/// Returns the parts that all settings share.
pub fn shared(all: &[&Setting]) -> Vec<String> {
    let Some(first) = all.first() else { return Vec::new() };
    let all: Vec<_> = all.iter().map(|setting| parts(setting)).collect();
    let common = |place: usize, part: &String| all.iter().all(|other| other[place] == *part);
    let is_shown =
        |place: usize| place != REVISION && place != CODE && !(place == PARAMETERS && first.parameters.is_empty());
    let all_parts = parts(first).into_iter().enumerate();
    let shown = all_parts.filter(|(place, part)| !part.is_empty() && is_shown(*place) && common(*place, part));
    shown.map(|(_, part)| part).collect()
}

/// Indexes of parts that are hidden unless needed: an only revision, no parameters, and the only code.
pub(crate) const REVISION: usize = 1;

const CODE: usize = 6;

pub(crate) const PARAMETERS: usize = 2;

pub(crate) fn label(setting: &Setting, all: &[Setting]) -> String {
    if all.len() == 1 {
        return shared(&[setting]).join(" · ");
    }
    let others: Vec<_> = all.iter().map(parts).collect();
    let own = parts(setting);
    let differs = |place: usize| {
        let rivals = others.iter().filter(|other| place != REVISION || other[0] == own[0]);
        rivals.map(|other| &other[place]).any(|part| *part != own[place])
    };
    own.iter()
        .enumerate()
        .filter(|(place, _)| differs(*place))
        .map(|(_, part)| part.as_str())
        .collect::<Vec<_>>()
        .join(" · ")
}
