//! Comparisons that were made, kept for as long as nothing that they are made of changes. The database counts these changes
//! itself (migration 35), so whoever writes can't forget to.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::compare::view::Comparison;

/// Runs of all that is kept, which bounds the memory: the charts of a run take some 20 kB.
const MOST_RUNS: usize = 500;

/// What the address says that a comparison was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The query of the address.
    pub query: String,
    /// With the charts of what happened second by second.
    pub with_series: bool,
}

/// How often what comparisons are made of has changed. Read it before the runs: what is read later is as new or newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version(pub i64);

/// The comparisons of one server; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Cache(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Of all that is kept.
    version: Version,
    /// The one used last comes last.
    made: VecDeque<(Key, Arc<Comparison>)>,
}

impl Cache {
    /// What was made for a key from what there is now.
    pub fn get(&self, version: Version, key: &Key) -> Option<Arc<Comparison>> {
        let mut kept = self.kept();
        if kept.version != version {
            return None;
        }
        let place = kept.made.iter().position(|(other, _)| other == key)?;
        let found = kept.made.remove(place)?;
        let comparison = Arc::clone(&found.1);
        kept.made.push_back(found);
        Some(comparison)
    }

    /// Keeps what was made after this version was read. What was made of older things goes, and so does what was not used
    /// for longest where there is too much.
    pub fn keep(&self, version: Version, key: Key, comparison: Arc<Comparison>) {
        let mut kept = self.kept();
        if version.0 < kept.version.0 {
            return;
        }
        if kept.version != version {
            *kept = Kept { version, made: VecDeque::new() };
        }
        kept.made.retain(|(other, _)| *other != key);
        kept.made.push_back((key, comparison));
        while kept.runs() > MOST_RUNS {
            kept.made.pop_front();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn runs(&self) -> usize {
        self.made.iter().map(|(_, comparison)| comparison.run_count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::{repeated, run},
        web::series_style::Marks,
    };

    fn key(query: &str) -> Key {
        Key { query: query.to_owned(), with_series: true }
    }

    fn comparison() -> Arc<Comparison> {
        Arc::new(Comparison::new(repeated(|n| run("servy", n)), &Marks::default(), None))
    }

    #[test]
    fn what_was_made_of_something_older_is_never_given() {
        let (cache, made) = (Cache::default(), comparison());
        cache.keep(Version(3), key("runs=a"), Arc::clone(&made));
        assert_eq!(cache.get(Version(3), &key("runs=a")), Some(made.clone()));
        assert_eq!(cache.get(Version(3), &Key { with_series: false, ..key("runs=a") }), None);
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "something changed since");
        cache.keep(Version(4), key("runs=b"), Arc::clone(&made));
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "the older one is gone");
        cache.keep(Version(3), key("runs=a"), made);
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "one that took long is not kept as new");
    }

    #[test]
    fn it_holds_so_many_runs_and_forgets_what_was_not_used_for_longest() {
        let (cache, made) = (Cache::default(), comparison());
        let fit = MOST_RUNS / made.run_count();
        cache.keep(Version(1), key("first"), Arc::clone(&made));
        cache.keep(Version(1), key("second"), Arc::clone(&made));
        for n in 2..=fit {
            assert!(cache.get(Version(1), &key("first")).is_some(), "it is used");
            cache.keep(Version(1), key(&n.to_string()), Arc::clone(&made));
        }
        assert!(cache.get(Version(1), &key("first")).is_some());
        assert!(cache.get(Version(1), &key("second")).is_none());
    }
}
