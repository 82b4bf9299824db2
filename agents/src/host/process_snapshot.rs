//! Who of a target was there when its measurement began, and is gone at its end: a worker that crashed and that its master
//! replaced leaves no other trace.

use std::collections::BTreeSet;

use crate::host::procfs;
use crate::sandbox::Group;

/// Processes, each with the time of its birth: numbers are given anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster(BTreeSet<(i32, u64)>);

impl Roster {
    /// Who is in a group now. One that has ended and was not buried yet is not.
    pub fn call(group: &Group) -> Self {
        let alive = group.processes().into_iter().filter_map(|pid| Some((pid, procfs::born(pid)?)));
        Self(alive.collect())
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of these are not among the later ones.
    pub fn gone(&self, later: &Self) -> u32 {
        u32::try_from(self.0.difference(&later.0).count()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_anew_is_somebody_else() {
        let before = Roster([(7, 100), (8, 100), (9, 100)].into());
        let after = Roster([(7, 100), (8, 250), (10, 300)].into());
        assert_eq!((before.len(), before.gone(&after)), (3, 2));
        assert_eq!(before.gone(&before), 0);
    }
}
