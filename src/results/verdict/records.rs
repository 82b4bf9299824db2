//! What the load generators of a run reported about its load, added up. Pure.

use brewbench_wire::load_record::{LoadRecord, Message, Messages};

use crate::{results::verdict::model::Context, web::format};

/// Returns the records of all load generators; those of older agents have none.
pub(super) fn records<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a LoadRecord> + use<'a> {
    let own = [context.conditions].into_iter();
    own.chain(context.generators.iter().map(|one| &one.conditions)).filter_map(|one| one.load_record.as_ref())
}

/// Returns the number of interrupted iterations; 0 if it is unknown.
pub(super) fn interrupted(context: &Context<'_>) -> u64 {
    records(context).filter_map(|record| record.interrupted_iterations).fold(0, u64::saturating_add)
}

/// Returns the script's own limit of requests per second, of all load generators together.
pub(super) fn rps_limit(context: &Context<'_>) -> Option<f64> {
    records(context).map(|record| record.rps_limit).sum::<Option<f64>>().filter(|limit| *limit > 0.0)
}

/// Returns how many messages of a kind there were, and the commonest one; None if unknown.
pub(super) fn messages<'a>(
    context: &Context<'a>,
    kind: fn(&LoadRecord) -> Option<&Messages>,
) -> Option<(u64, Option<&'a Message>)> {
    let all: Vec<&Messages> = records(context).filter_map(kind).collect();
    let first = all.iter().filter_map(|messages| messages.first()).max_by_key(|message| message.count);
    (!all.is_empty()).then(|| (all.iter().fold(0, |sum, messages| messages.count.saturating_add(sum)), first))
}

/// Returns the commonest error of requests, or the commonest exception if there were more of them.
pub(super) fn commonest<'a>(context: &Context<'a>) -> Option<&'a Message> {
    let of = |kind| messages(context, kind).and_then(|(_, first)| first);
    let (errors, exceptions) = (of(|record| record.errors.as_ref()), of(|record| record.exceptions.as_ref()));
    exceptions.into_iter().chain(errors).max_by_key(|message| message.count)
}

/// Describes a message: `TypeError: … (12 times)`.
pub(super) fn described(Message { text, count }: &Message) -> String {
    match count {
        1 => format!("{text} (once)"),
        times => format!("{text} ({} times)", self::count(*times)),
    }
}

/// Writes a count in a sentence: `51,230`.
pub(super) fn count(count: u64) -> String {
    format::count(Some(count)).text().to_owned()
}
