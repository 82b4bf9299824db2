//! Cache of comparisons, valid until one of their inputs changes. Triggers in the database count these changes
//! (migration 35), so no write can forget to invalidate.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::compare::{rendered::Rendered, view::Surface};

/// Maximum number of runs in all cached comparisons; the charts of a run take about 20 kB.
const MAX_RUNS: usize = 300;

/// Key of a cached comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The query of the address.
    pub query: String,
    /// Whether it includes the time-series charts.
    pub with_series: bool,
    /// Where it is shown. Outside the site, it does not name agents.
    pub place: Surface,
}

/// Number of changes to the inputs of comparisons. Must be read before the inputs themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version(pub i64);

/// Cached comparisons of the server; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Cache(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    /// Version of all cached comparisons.
    version: Version,
    /// Most recently used last.
    comparisons: VecDeque<(Key, Arc<Rendered>)>,
}

impl Cache {
    /// Returns the comparison of a key unless an input has changed since.
    pub fn get(&self, version: Version, key: &Key) -> Option<Arc<Rendered>> {
        let mut entries = self.entries();
        if entries.version != version {
            return None;
        }
        let place = entries.comparisons.iter().position(|(other, _)| other == key)?;
        let found = entries.comparisons.remove(place)?;
        let comparison = Arc::clone(&found.1);
        entries.comparisons.push_back(found);
        Some(comparison)
    }

    /// Caches a comparison whose inputs were read after this version.
    ///
    /// Drops comparisons of older versions, and the least recently used ones above the limit.
    pub fn keep(&self, version: Version, key: Key, comparison: Arc<Rendered>) {
        let mut entries = self.entries();
        if version.0 < entries.version.0 {
            return;
        }
        if entries.version != version {
            *entries = Entries { version, comparisons: VecDeque::new() };
        }
        entries.comparisons.retain(|(other, _)| *other != key);
        entries.comparisons.push_back((key, comparison));
        while entries.run_count() > MAX_RUNS {
            entries.comparisons.pop_front();
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn run_count(&self) -> usize {
        self.comparisons.iter().map(|(_, comparison)| comparison.run_count()).sum()
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
        Key { query: query.to_owned(), with_series: true, place: Surface::Inside }
    }

    fn comparison() -> Arc<Rendered> {
        Arc::new(Comparison::new(repeated(|n| run("servy", n)), &Marks::default(), None).into())
    }

    #[test]
    fn a_comparison_of_an_older_version_is_never_returned() {
        let (cache, cached) = (Cache::default(), comparison());
        cache.keep(Version(3), key("runs=a"), Arc::clone(&cached));
        assert_eq!(cache.get(Version(3), &key("runs=a")), Some(cached.clone()));
        assert_eq!(cache.get(Version(3), &Key { with_series: false, ..key("runs=a") }), None);
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "an input has changed");
        cache.keep(Version(4), key("runs=b"), Arc::clone(&cached));
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "the older comparison is dropped");
        cache.keep(Version(3), key("runs=a"), cached);
        assert_eq!(cache.get(Version(4), &key("runs=a")), None, "a slow computation is not cached as new");
    }

    #[test]
    fn the_least_recently_used_comparisons_are_dropped() {
        let (cache, cached) = (Cache::default(), comparison());
        let capacity = MAX_RUNS / cached.run_count();
        cache.keep(Version(1), key("first"), Arc::clone(&cached));
        cache.keep(Version(1), key("second"), Arc::clone(&cached));
        for n in 2..=capacity {
            assert!(cache.get(Version(1), &key("first")).is_some(), "a used comparison stays");
            cache.keep(Version(1), key(&n.to_string()), Arc::clone(&cached));
        }
        assert!(cache.get(Version(1), &key("first")).is_some());
        assert!(cache.get(Version(1), &key("second")).is_none());
    }
}
