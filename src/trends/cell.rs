//! The cells of trends: which runs belong to one history. Pure.

use std::collections::BTreeMap;

use brewbench_wire::target::TargetKind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::{
    app::ids::AgentId,
    runs::{load, model::RunSize, store::cells::CellRow},
};

/// A cell over time: one target in all its versions, on one size, under one scenario and load, by one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrendCell {
    /// Its stable id among the cells of its target.
    pub id: String,
    /// Name of the target.
    pub target: String,
    /// The machine size.
    pub size: Option<RunSize>,
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// The scenario's revision: another script is another load.
    pub scenario_sha256: Option<String>,
    /// The scenario's parameters.
    pub parameters: BTreeMap<String, String>,
    /// The load as text; null if unknown.
    pub load: Option<String>,
    /// The load generator and its version; null if unknown.
    pub engine: Option<String>,
    /// How the target was provided: `process`, `container`, `vm`, `url` or `kubernetes`; null if unknown.
    #[schema(value_type = Option<String>)]
    pub kind: Option<TargetKind>,
    /// The agent; null for imports.
    pub agent: Option<String>,
    /// Its id before load generators were part of a cell.
    #[serde(skip)]
    pub(super) earlier_id: String,
}

/// A cell with the keys of its runs.
#[derive(Clone, Debug)]
pub struct KnownCell {
    /// The cell.
    pub cell: TrendCell,
    /// Its cell keys: several if loads differ in ways that the cell ignores, such as their length.
    pub keys: Vec<String>,
    /// The agent.
    pub agent: Option<AgentId>,
    /// How many valid runs it has.
    pub runs: usize,
    /// When the newest was submitted, unix ms.
    pub newest_at_ms: i64,
}

/// Groups rows by cell.
pub fn group(rows: Vec<CellRow>) -> Vec<KnownCell> {
    let mut all: Vec<KnownCell> = Vec::new();
    for row in rows {
        let cell = TrendCell::from_row(&row);
        let CellRow { key, runs, newest_at_ms, agent_id: agent, .. } = row;
        match all.iter_mut().find(|known| known.cell.id == cell.id && known.cell.target == cell.target) {
            Some(known) => {
                known.runs += runs;
                known.newest_at_ms = known.newest_at_ms.max(newest_at_ms);
                known.keys.push(key);
            }
            None => all.push(KnownCell { cell, keys: vec![key], agent, runs, newest_at_ms }),
        }
    }
    all
}

impl TrendCell {
    fn from_row(CellRow { spec, engine, kind, agent, .. }: &CellRow) -> Self {
        let load = load::describe_with(spec, load::exact).map(|load| load.replace('\u{a0}', " "));
        let vus = spec.vus.map(|count| format!("{count} {}", if count == 1 { "VU" } else { "VUs" }));
        // A size is identified by its cores and memory, not by its name.
        let size = spec.size.as_ref();
        // Pins, links and annotations hold the id: it is the digest that it was before there were cell keys.
        let identity = json!([
            spec.target,
            size.map(|size| size.vcpus),
            size.map(|size| size.memory_bytes),
            spec.scenario,
            spec.scenario_sha256,
            json!(spec.parameters).to_string(),
            load,
            spec.vus,
            agent
        ]);
        // One instance has the id that it had before there were several.
        let identity = if spec.replicas() == 1 { identity } else { json!([identity, spec.replicas()]) };
        let earlier_id = digest(&identity);
        // A program has the id that it had before there were other kinds.
        let other_kind = kind.filter(|kind| *kind != TargetKind::Process);
        let id = match (engine, other_kind) {
            (None, None) => earlier_id.clone(),
            (Some(engine), None) => digest(&json!([identity, engine])),
            (engine, Some(kind)) => digest(&json!([identity, engine, kind])),
        };
        Self {
            id,
            target: spec.target.clone(),
            size: spec.size.clone(),
            scenario: spec.scenario.clone(),
            scenario_sha256: spec.scenario_sha256.clone(),
            parameters: spec.parameters.clone(),
            load: load.or(vus),
            engine: engine.clone(),
            kind: *kind,
            agent: agent.clone(),
            earlier_id,
        }
    }

    /// Describes everything except the target in one line.
    pub fn setting(&self) -> String {
        let revision = |sha: &String| format!("revision {}", sha.chars().take(8).collect::<String>());
        let parts = [
            self.scenario.clone(),
            self.scenario_sha256.as_ref().map(revision),
            Some(self.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")),
            self.load.clone(),
            self.size.as_ref().map(|size| size.name.clone()),
            self.engine.clone(),
            self.kind.filter(|kind| *kind != TargetKind::Process).map(|kind| kind.to_string()),
            Some(self.agent.as_ref().map_or_else(|| "imported".to_owned(), |agent| format!("on {agent}"))),
        ];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }
}

fn digest(identity: &Value) -> String {
    let digest = Sha256::digest(identity.to_string().as_bytes());
    digest.iter().take(8).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::Load;

    use super::*;
    use crate::runs::{load::tests::vus, model::RunSpec};

    fn row(load: Option<Load>, size_name: &str) -> CellRow {
        let key = format!("{load:?}");
        let spec = RunSpec {
            target: "servy".to_owned(),
            size: Some(RunSize { name: size_name.to_owned(), vcpus: 2.0, memory_bytes: 4 << 30, replicas: 1 }),
            scenario: Some("hash".to_owned()),
            scenario_sha256: Some("00aa00aa00aa".to_owned()),
            load,
            vus: Some(10),
            ..RunSpec::default()
        };
        let (engine, kind) = (Some("k6 1.8.1".to_owned()), Some(TargetKind::Process));
        CellRow { spec, engine, kind, agent_id: None, agent: Some("rack".to_owned()), key, runs: 3, newest_at_ms: 1 }
    }

    #[test]
    fn a_cell_ignores_the_length_of_the_load_and_the_name_of_the_size() {
        let all = group(vec![
            row(Some(vus(10, 10.0)), "2 vCPU / 4 GiB"),
            row(Some(vus(10, 60.0)), "medium"),
            row(None, "medium"),
        ]);
        let [both, other] = all.as_slice() else { panic!("two cells: {all:?}") };
        assert_eq!((both.runs, both.keys.len(), other.keys.len()), (6, 2, 1));
        assert_eq!(both.cell.setting(), "hash · revision 00aa00aa · 10 VUs · 2 vCPU / 4 GiB · k6 1.8.1 · on rack");
        assert_ne!(both.cell.id, other.cell.id);
        assert_eq!(both.cell.id.len(), 16);
        let mut newer = row(None, "medium");
        newer.engine = Some("k6 2.2.0".to_owned());
        let upgraded = group(vec![row(None, "medium"), newer]);
        let [before, after] = upgraded.as_slice() else { panic!("two cells: {upgraded:?}") };
        assert_ne!(before.cell.id, after.cell.id, "another load generator is another cell");
        assert_eq!(before.cell.earlier_id, after.cell.earlier_id);
        let with = |kind| {
            let mut one = row(None, "medium");
            one.kind = kind;
            group(vec![one]).remove(0).cell
        };
        assert_eq!(with(None).id, with(Some(TargetKind::Process)).id, "as before there were other kinds");
        let remote = with(Some(TargetKind::Url));
        assert_ne!(remote.id, with(None).id, "another kind is another cell");
        assert!(remote.setting().ends_with(" · url · on rack"), "{}", remote.setting());
    }
}
