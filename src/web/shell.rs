//! The layout around every page: title, navigation and the current user.

use super::request;

/// The data of `layout.html`; every page's template has it as its field `shell`.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The title in the browser's tab.
    pub title: String,
    /// The navigation entry of the page.
    pub section: Section,
    /// The logged-in user.
    pub user: Option<CurrentUser>,
    /// The chapter of the documentation that explains the page, such as `guide/targets`.
    pub help: &'static str,
    /// Whether it has the search in its header.
    has_search: bool,
}

/// The user who views a page.
#[derive(Clone, Debug)]
pub struct CurrentUser {
    /// The user's name.
    pub name: String,
}

impl CurrentUser {
    /// The first letter of the name, for the button of the account menu.
    pub fn initial(&self) -> String {
        self.name.chars().next().map_or_else(String::new, |letter| letter.to_uppercase().collect())
    }
}

/// The section of a page, for the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Recent results and current runs.
    Dashboard,
    /// History and single runs.
    Runs,
    /// Experiments.
    Experiments,
    /// Runs side by side.
    Compare,
    /// Named sets of runs.
    Baselines,
    /// Links to comparisons without a login.
    Shares,
    /// Regressions of a candidate.
    Gate,
    /// Cells over versions and time.
    Trends,
    /// Server implementations.
    Targets,
    /// k6 scripts.
    Scenarios,
    /// Machine sizes.
    Sizes,
    /// Agents.
    Agents,
    /// Settings of the server.
    Settings,
    /// Documentation, login, registration, errors.
    Other,
}

impl Section {
    /// The chapter that explains the pages of this section.
    fn chapter(self) -> &'static str {
        match self {
            Self::Dashboard | Self::Runs => "guide/runs",
            Self::Experiments => "guide/experiments",
            Self::Compare | Self::Baselines | Self::Shares | Self::Gate => "guide/comparing",
            Self::Trends => "guide/trends",
            Self::Targets => "guide/targets",
            Self::Scenarios => "guide/scenarios",
            Self::Sizes => "guide/machine-sizes",
            Self::Agents => "guide/agents",
            Self::Settings => "guide/operations",
            Self::Other => "README",
        }
    }
}

/// One entry of the navigation.
#[derive(Clone, Copy, Debug)]
pub struct NavEntry {
    /// The text of the link.
    pub label: &'static str,
    /// The address.
    pub href: &'static str,
    sections: &'static [Section],
}

const fn entry(label: &'static str, href: &'static str, sections: &'static [Section]) -> NavEntry {
    NavEntry { label, href, sections }
}

/// The sections of comparisons.
const COMPARISONS: [Section; 5] =
    [Section::Experiments, Section::Compare, Section::Baselines, Section::Shares, Section::Gate];

const NAVIGATION: [NavEntry; 6] = [
    entry("Dashboard", "/", &[Section::Dashboard]),
    entry("Comparisons", "/experiments", &COMPARISONS),
    entry("Runs", "/runs", &[Section::Runs]),
    entry("Trends", "/trends", &[Section::Trends]),
    entry("Targets", "/targets", &[Section::Targets, Section::Scenarios, Section::Sizes]),
    entry("Agents", "/agents", &[Section::Agents]),
];

/// Tabs of the pages about what is measured.
const TARGET_TABS: [NavEntry; 3] = [
    entry("Targets", "/targets", &[Section::Targets]),
    entry("Scenarios", "/scenarios", &[Section::Scenarios]),
    entry("Machine sizes", "/sizes", &[Section::Sizes]),
];

/// Tabs of the pages about comparisons.
const COMPARISON_TABS: [NavEntry; 5] = [
    entry("Experiments", "/experiments", &[Section::Experiments]),
    entry("Compare", "/compare", &[Section::Compare]),
    entry("Baselines", "/baselines", &[Section::Baselines]),
    entry("Share links", "/shares", &[Section::Shares]),
    entry("Gate", "/gate", &[Section::Gate]),
];

/// The account menu; the last entries are for administrators.
const ACCOUNT: [(&str, &str); 6] = [
    ("Account", "/account"),
    ("Tokens", "/tokens"),
    ("Settings", "/settings"),
    ("Users", "/users"),
    ("Webhooks", "/settings/webhooks"),
    ("Audit log", "/audit"),
];

/// Number of entries of [`ACCOUNT`] that everybody has.
const FOR_EVERYBODY: usize = 3;

impl Shell {
    /// For a logged-in user.
    pub fn signed_in(title: impl Into<String>, section: Section, name: &str) -> Self {
        let user = Some(CurrentUser { name: name.to_owned() });
        Self { title: title.into(), section, user, help: section.chapter(), has_search: true }
    }

    /// For a visitor without a login.
    pub fn anonymous(title: impl Into<String>) -> Self {
        let section = Section::Other;
        Self { title: title.into(), section, user: None, help: section.chapter(), has_search: false }
    }

    /// For the documentation, which needs no login.
    pub fn documentation(title: impl Into<String>, name: Option<&str>) -> Self {
        let user = name.map(|name| CurrentUser { name: name.to_owned() });
        Self { user, has_search: true, ..Self::anonymous(title) }
    }

    /// The same with the chapter that explains this page better than that of its section.
    #[must_use]
    pub fn explained_in(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// Whether the page has the search in its header: every page of a logged-in user, and the documentation.
    pub fn has_search(&self) -> bool {
        self.has_search
    }

    /// The navigation entries.
    pub fn navigation(&self) -> &'static [NavEntry] {
        &NAVIGATION
    }

    /// The tabs of the page's section; empty for a section with one page.
    pub fn tabs(&self) -> &'static [NavEntry] {
        match self.section {
            Section::Targets | Section::Scenarios | Section::Sizes => &TARGET_TABS,
            section if COMPARISONS.contains(&section) => &COMPARISON_TABS,
            _ => &[],
        }
    }

    /// Whether the page is in a section of an entry.
    pub fn is_at(&self, entry: &NavEntry) -> bool {
        entry.sections.contains(&self.section)
    }

    /// Label and address of the entries of the account menu that the user may open.
    pub fn account_menu(&self) -> &'static [(&'static str, &'static str)] {
        let is_admin = request::user().is_some_and(|user| user.is_admin);
        if is_admin { &ACCOUNT } else { &ACCOUNT[..FOR_EVERYBODY] }
    }
}
