//! Checks pages with axe-core, which is loaded from `node_modules`, not from the site.

use std::{fs, sync::LazyLock};

use super::Tab;
use crate::harness::root;

static AXE: LazyLock<String> = LazyLock::new(|| {
    let path = root().join("node_modules/axe-core/axe.min.js");
    fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}; `make assets` fetches it", path.display()))
});

/// A set of rules of axe-core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// All rules.
    All,
    /// Rules whose result depends on the colour scheme.
    Colours,
}

impl Tab {
    /// Returns a line for each violation: rule, element and advice.
    pub async fn violations(&self, rules: Rules) -> Vec<String> {
        if !self.eval::<bool>("'axe' in window").await {
            self.eval::<Option<()>>(&format!("{}; null", *AXE)).await;
        }
        let only = match rules {
            Rules::All => "{}",
            Rules::Colours => "{runOnly: ['color-contrast', 'link-in-text-block']}",
        };
        self.eval(&format!(
            "axe.run(document, {{resultTypes: ['violations'], ...{only}}}).then(({{violations}}) =>
             violations.flatMap(({{id, nodes}}) => nodes.map(({{target, failureSummary}}) =>
             `${{id}} at ${{target.join(' ')}}: ${{failureSummary.split('\\n').slice(1).join(';').trim()}}`)))"
        ))
        .await
    }
}
