//! SQL of the history: lists of runs with any filters and order, page by page.
//!
//! A page continues after the last run of the previous page. All filters have indexes. Which index leads is decided by
//! counting, up to [`FEW`], and written into the statement, so that it does not depend on the planner's estimates.

use rusqlite::{Connection, OptionalExtension, params_from_iter, types::Value};

use crate::app::rows::{MAX_SEARCH, MAX_WORK, Rows};
use crate::runs::{
    column::{Column, Order, SortOrder},
    filter::{Field, Filter, PHASES, RunScope, VERDICTS},
    model::Run,
    store::row::select,
};

/// Up to this number, sorting the runs is faster than walking an index of all runs until a page is full.
const FEW: i64 = 2_500;

/// Returns the runs that match a filter, in its order, at most `limit`.
pub async fn list(rows: &Rows, filter: &Filter, limit: i64) -> sqlx::Result<Vec<Run>> {
    let filter = filter.clone();
    let most = if filter.text.is_some() { MAX_SEARCH } else { MAX_WORK };
    rows.read_within(most, move |connection| {
        let lead = lead(connection, &filter)?;
        let Some(parts) = parts(connection, &filter, &lead)? else { return Ok(Vec::new()) };
        let mut runs: Vec<Run> = Vec::new();
        for part in parts {
            let rest = limit - i64::try_from(runs.len()).unwrap_or(limit);
            if rest <= 0 {
                break;
            }
            let Statement { sql, values } = statement(&filter, &lead, &part, rest);
            runs.extend(select(connection, &sql, params_from_iter(values))?);
        }
        Ok(runs)
    })
    .await
}

/// Returns SQLite's query plan of a list, one line per step.
pub async fn plan(rows: &Rows, filter: &Filter, limit: i64) -> sqlx::Result<Vec<String>> {
    let filter = filter.clone();
    rows.read(move |connection| {
        let lead = lead(connection, &filter)?;
        let mut steps = Vec::new();
        for part in parts(connection, &filter, &lead)?.unwrap_or_default() {
            let Statement { sql, values } = statement(&filter, &lead, &part, limit);
            let mut explained = connection.prepare(&format!("explain query plan select * from run {sql}"))?;
            let rows = explained.query_map(params_from_iter(values), |row| row.get::<_, String>("detail"))?;
            steps.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        Ok(steps)
    })
    .await
}

/// SQL text and its bound values.
#[derive(Debug)]
struct Statement {
    sql: String,
    values: Vec<Value>,
}

impl Statement {
    fn new(head: &str) -> Self {
        Self { sql: head.to_owned(), values: Vec::new() }
    }

    fn push(&mut self, sql: impl AsRef<str>) -> &mut Self {
        self.sql.push_str(sql.as_ref());
        self
    }

    fn push_bind(&mut self, value: impl Into<Value>) -> &mut Self {
        self.sql.push('?');
        self.values.push(value.into());
        self
    }
}

/// The most selective filter, which is looked up first.
#[derive(Clone, Debug, PartialEq)]
enum Lead {
    /// The index of the order, walked until the page is full.
    Order,
    /// The index of a property.
    Field(Field, &'static str),
    /// The index of submission times.
    Window,
    /// The label.
    Label,
    /// The text.
    Text,
}

fn lead(connection: &Connection, filter: &Filter) -> rusqlite::Result<Lead> {
    let indexed = |(field, value): &(Field, String)| Some(Lead::Field(*field, index(*field, value)?));
    let mut candidates: Vec<Lead> = filter.equal.iter().filter_map(indexed).collect();
    // Failed runs are few compared with all, and mostly lack the metric of the order.
    if let Some(failed) = candidates.iter().find(|lead| matches!(lead, Lead::Field(Field::Phase, _))) {
        return Ok(failed.clone());
    }
    let as_submitted = filter.order.column == Column::Submitted;
    let leads_alone = candidates.len() == 1 && filter.label.is_none() && filter.text.is_none();
    if as_submitted && leads_alone {
        return Ok(candidates.remove(0));
    }
    candidates.extend(filter.label.iter().map(|_| Lead::Label));
    candidates.extend(filter.text.iter().map(|_| Lead::Text));
    if filter.from_ms.is_some() || filter.to_ms.is_some() {
        candidates.push(Lead::Window);
    }
    let mut best: Option<(i64, Lead)> = None;
    for candidate in candidates {
        let count = count(connection, filter, &candidate)?;
        if best.as_ref().is_none_or(|(known, _)| count < *known) {
            best = Some((count, candidate));
        }
    }
    Ok(match best {
        Some((count, lead)) if count < FEW => lead,
        // The index is already in the requested order, so the number of runs does not matter.
        Some((_, lead @ (Lead::Field(..) | Lead::Window))) if as_submitted => lead,
        _ => Lead::Order,
    })
}

/// The index of a value's runs in order of submission; none if most runs have the value.
fn index(field: Field, value: &str) -> Option<&'static str> {
    Some(match (field, value) {
        (Field::Target, _) => "overview_run_target",
        (Field::Version, _) => "run_by_version",
        (Field::Size, _) => "overview_run_size",
        (Field::Scenario, _) => "overview_run_scenario",
        (Field::Agent, _) => "overview_run_agent",
        (Field::Engine, _) => "run_by_engine",
        (Field::CreatedBy, _) => "run_by_person",
        (Field::Experiment, _) => "run_experiment",
        (Field::Phase, "finished") | (Field::Verdict, "valid") | (Field::Kind, "process") => return None,
        (Field::Kind, _) => "run_by_kind",
        (Field::Phase, "failed" | "lost" | "cancelled") => "run_broken",
        (Field::Phase, _) => "run_unfinished",
        (Field::Verdict, _) => "run_doubtful",
    })
}

/// The index for this order; none if the table itself is in this order.
fn index_of(order: Order) -> Option<&'static str> {
    match order.column {
        Column::Ended => Some("overview_run_finished"),
        Column::Figure(metric) => metric.def().index,
        _ => None,
    }
}

/// Counts the runs that match a lead alone, up to [`FEW`].
fn count(connection: &Connection, filter: &Filter, lead: &Lead) -> rusqlite::Result<i64> {
    let mut statement = Statement::new("select count(*) from (select 1 from ");
    match lead {
        Lead::Order => return Ok(FEW),
        Lead::Field(field, index) => {
            statement.push(format!("run indexed by {index} where true"));
            for (_, value) in filter.equal.iter().filter(|(other, _)| other == field) {
                push_equal(&mut statement, *field, value);
            }
        }
        Lead::Window => {
            statement.push("run indexed by run_by_queued_at where true");
            push_window(&mut statement, filter);
        }
        Lead::Label => {
            statement.push("run_label where label = ").push_bind(filter.label.clone());
        }
        Lead::Text => {
            statement.push("(");
            push_matches(&mut statement, &pattern(filter));
            statement.push(")");
        }
    }
    statement.push(" limit ").push_bind(FEW).push(")");
    connection.prepare_cached(&statement.sql)?.query_row(params_from_iter(statement.values), |row| row.get(0))
}

/// A part of a list that one statement reads.
#[derive(Clone, Debug, PartialEq)]
enum ListSlice {
    /// All runs with the metric.
    All,
    /// Runs with the same value as a run, after it.
    Ties(f64, i64),
    /// Runs after a value.
    Beyond(f64),
    /// Runs without the metric, newest first, optionally after a run.
    Missing(Option<i64>),
}

/// Returns the parts after the last run of the previous page; none if that run does not exist.
fn parts(connection: &Connection, filter: &Filter, lead: &Lead) -> rusqlite::Result<Option<Vec<ListSlice>>> {
    // Every run has a submission time, and searching for one without would scan all runs.
    let missing = (filter.order.column != Column::Submitted).then_some(ListSlice::Missing(None));
    let Some(after) = &filter.after else { return Ok(Some([ListSlice::All].into_iter().chain(missing).collect())) };
    let figure = ordered_by(filter.order, lead);
    let place = format!("select seq, cast({figure} as real) from run where id = ?");
    let place: Option<(i64, Option<f64>)> = connection
        .prepare_cached(&place)?
        .query_row([after.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(place.map(|(seq, figure)| match figure {
        Some(figure) => [ListSlice::Ties(figure, seq), ListSlice::Beyond(figure)].into_iter().chain(missing).collect(),
        None => vec![ListSlice::Missing(Some(seq))],
    }))
}

/// The SQL expression of the order. For a time window, the index of submission times is in the same order.
fn ordered_by(order: Order, lead: &Lead) -> &'static str {
    if order.column == Column::Submitted && *lead == Lead::Window {
        "queued_at"
    } else {
        order.column.sql().unwrap_or("seq")
    }
}

/// Writes what follows `select … from run`. Column and index names come from fixed lists; all values are bound.
fn statement(filter: &Filter, lead: &Lead, part: &ListSlice, limit: i64) -> Statement {
    let Filter { equal, label, text, scope: among, .. } = filter;
    let index = match lead {
        // The index of a metric does not contain runs without it.
        Lead::Order if !matches!(part, ListSlice::Missing(_)) => index_of(filter.order),
        Lead::Field(_, index) => Some(*index),
        Lead::Window => Some("run_by_queued_at"),
        Lead::Order | Lead::Label | Lead::Text => None,
    };
    let mut statement = Statement::new("");
    match index {
        Some(index) => statement.push(format!(" indexed by {index}")),
        None => statement.push(" not indexed"),
    };
    statement.push(" where deleted_at is null");
    if *among == RunScope::Ended {
        statement.push(" and phase in ('finished', 'failed', 'cancelled', 'lost')");
    }
    for (field, value) in equal {
        push_equal(&mut statement, *field, value);
    }
    push_window(&mut statement, filter);
    if label.is_some() {
        let has = if *lead == Lead::Label {
            " and seq in (select run_seq from run_label where label = "
        } else {
            " and exists (select 1 from run_label where run_seq = run.seq and label = "
        };
        statement.push(has).push_bind(label.clone()).push(")");
    }
    if text.is_some() {
        let pattern = pattern(filter);
        if *lead == Lead::Text {
            statement.push(" and seq in (");
            push_matches(&mut statement, &pattern);
        } else {
            statement.push(" and (target in (");
            push_targets(&mut statement, &pattern);
            statement.push(") or experiment_id in (");
            push_experiments(&mut statement, &pattern);
            statement.push(r") or note like ").push_bind(pattern).push(r" escape '\'");
        }
        statement.push(")");
    }
    push_part(&mut statement, ordered_by(filter.order, lead), filter.order.first, part);
    statement.push(" limit ").push_bind(limit);
    statement
}

/// Returns the condition that a property has the value of the next parameter.
fn equals(field: Field) -> String {
    let column = field.column();
    match field {
        Field::Agent => format!("{column} = (select id from agent where name = ?)"),
        _ => format!("{column} = ?"),
    }
}

/// Adds an equality. Phases and verdicts are written out, because SQLite uses a partial index only for literals.
fn push_equal(statement: &mut Statement, field: Field, value: &str) {
    let column = field.column();
    if matches!(field, Field::Phase | Field::Verdict) {
        let word = PHASES.into_iter().chain(VERDICTS).find(|word| *word == value).unwrap_or_default();
        statement.push(format!(" and {column} = '{word}'"));
    } else {
        statement.push(" and ").push(equals(field));
        statement.values.push(value.to_owned().into());
    }
    if index(field, value) == Some("run_unfinished") {
        statement.push(" and phase not in ('finished', 'failed', 'cancelled', 'lost')");
    }
}

fn push_part(statement: &mut Statement, figure: &str, first: SortOrder, part: &ListSlice) {
    let (beyond, way) = match first {
        SortOrder::Greatest => ("<", " desc"),
        SortOrder::Least => (">", ""),
    };
    let presence = if matches!(part, ListSlice::Missing(_)) { "null" } else { "not null" };
    statement.push(format!(" and {figure} is {presence}"));
    match part {
        ListSlice::All => {
            statement.push(format!(" order by {figure}{way}, seq{way}"));
        }
        ListSlice::Ties(value, seq) => {
            statement.push(format!(" and {figure} = ")).push_bind(*value);
            statement.push(format!(" and seq {beyond} ")).push_bind(*seq).push(format!(" order by seq{way}"));
        }
        ListSlice::Beyond(value) => {
            statement.push(format!(" and {figure} {beyond} ")).push_bind(*value);
            statement.push(format!(" order by {figure}{way}, seq{way}"));
        }
        ListSlice::Missing(after) => {
            if let Some(seq) = after {
                statement.push(" and seq < ").push_bind(*seq);
            }
            statement.push(" order by seq desc");
        }
    }
}

fn push_window(statement: &mut Statement, filter: &Filter) {
    if let Some(from) = filter.from_ms {
        statement.push(" and queued_at >= ").push_bind(from);
    }
    if let Some(to) = filter.to_ms {
        statement.push(" and queued_at <= ").push_bind(to);
    }
}

/// Selects the runs whose names or notes contain a text. Names are searched in tables that hold each name once.
fn push_matches(statement: &mut Statement, pattern: &str) {
    statement.push("select seq from run indexed by overview_run_target where target in (");
    push_targets(statement, pattern);
    statement.push(") union all select seq from run indexed by run_experiment where experiment_id in (");
    push_experiments(statement, pattern);
    statement.push(") union all select seq from run indexed by run_noted where note is not null and note like ");
    statement.push_bind(pattern.to_owned()).push(r" escape '\'");
}

fn push_targets(statement: &mut Statement, pattern: &str) {
    statement.push("select name from target_colour where name like ").push_bind(pattern.to_owned());
    statement.push(r" escape '\'");
}

fn push_experiments(statement: &mut Statement, pattern: &str) {
    statement.push("select id from experiment where name like ").push_bind(pattern.to_owned());
    statement.push(r" escape '\' or note like ").push_bind(pattern.to_owned()).push(r" escape '\'");
}

/// The pattern for `like` that finds a text anywhere, with wildcards escaped.
fn pattern(filter: &Filter) -> String {
    let text = filter.text.as_deref().unwrap_or_default();
    format!("%{}%", text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_"))
}
