//! Notes on what is known about the code of the target: they do not affect the verdict. Pure.

use brewbench_wire::target::PARTIAL;

use crate::{
    app::ids::RunId,
    results::verdict::model::Context,
    runs::{code::are_comparable, verdict::Reason},
};

/// Code of the note that an earlier run of the version measured other code.
const CHANGED: &str = "code_changed";

pub(super) fn judge(context: &Context<'_>, reasons: &mut Vec<Reason>) {
    if let Some(why) = context.code_unknown {
        let text = format!(
            "code not identified: {why}. Runs of other experiments are no repetitions of this one; write `identity` into \
             the manifest"
        );
        reasons.push(Reason::note("code_not_identified", text));
    }
}

/// An earlier run of the same cell, agent and version.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Its id.
    pub run: RunId,
    /// What identified its target.
    pub identity: String,
    /// What identifies the target of the later run.
    pub later: String,
    /// The version of both.
    pub version: String,
}

impl Earlier {
    /// Returns a note if the code has changed under one version.
    pub fn note(&self) -> Option<Reason> {
        let Self { run, identity, later, version } = self;
        (identity != later && are_comparable(identity, later) && !later.starts_with(PARTIAL)).then(|| {
            let text = format!(
                "the code has changed since run {run}, but the version is still {version}: they are no repetitions of each \
                 other; raise the version with each change"
            );
            Reason::note(CHANGED, text)
        })
    }
}

/// Whether a reason is the note of [`Earlier`], which depends on no limit.
pub fn is_change(reason: &Reason) -> bool {
    reason.code == CHANGED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identities_of_one_kind_show_a_change() {
        let note = |identity: &str, later: &str| {
            let earlier = Earlier {
                run: "r".to_owned().into(),
                identity: identity.to_owned(),
                later: later.to_owned(),
                version: "1".to_owned(),
            };
            earlier.note().map(|note| note.text)
        };
        let text = note("code:aa", "code:bb").expect("a change");
        assert!(text.starts_with("the code has changed since run r, but the version is still 1"), "{text}");
        assert_eq!(note("code:aa", "code:aa"), None);
        // The first run after an upgrade of the agent.
        assert_eq!(note(&"ab".repeat(32), "code:bb"), None);
        assert_eq!(note("code:aa", "part:bb"), None);
    }
}
