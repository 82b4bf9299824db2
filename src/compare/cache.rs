//! Comparisons, cached until one of their inputs changes. The database counts these changes with triggers (migration 35), so no
//! write can forget to invalidate.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::compare::made::Made;

/// Runs of all cached comparisons together, which bounds the memory: the charts of a run take some 20 kB.
const MOST_RUNS: usize = 300;

/// What a comparison was requested for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The query of the address.
    pub query: String,
    /// With the charts of each second.
    pub with_series: bool,
}

/// How often the inputs of comparisons have changed. Read it before the runs: what is read later is as new or newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version(pub i64);

/// The comparisons of one server; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Cache(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Of all cached comparisons.
    version: Version,
    /// Most recently used last.
    made: VecDeque<(Key, Arc<Made>)>,
}

impl Cache {
    /// The comparison of a key, unless an input has changed since.
    pub fn get(&self, version: Version, key: &Key) -> Option<Arc<Made>> {
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

    /// Caches a comparison whose inputs were read after this version. Comparisons of older versions are dropped, and the
    /// least recently used ones where there are too many.
    pub fn keep(&self, version: Version, key: Key, comparison: Arc<Made>) {
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
        compare::{
            testing::{repeated, run},
            view::Comparison,
        },
        web::series_style::Marks,
    };

    fn key(query: &str) -> Key {
        Key { query: query.to_owned(), with_series: true }
    }

    fn comparison() -> Arc<Made> {
        Arc::new(Comparison::new(repeated(|n| run("servy", n)), &Marks::default(), None).into())
    }

    #[test]
    fn a_comparison_of_an_older_version_is_never_returned() {
        let (cache, made) = (Cache::default(), comparison());
        cache.keep(Version(3), key("runs=a"), Arc::clone(&made));
        assert_eq!(cache.get(Version(3), &key("runs=a")), Some(made.clone()));
        assert_eq!(cache.get(Version(3), &Key { with_series: false, ..key("runs=a") }), None);
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "something changed since");
        cache.keep(Version(4), key("runs=b"), Arc::clone(&made));
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "the older one is gone");
        cache.keep(Version(3), key("runs=a"), made);
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "a slow computation is not cached as new");
    }

    #[test]
    fn the_least_recently_used_comparisons_are_dropped() {
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
