//! The layout around every page: title, navigation and the current user.

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
            Self::Compare => "guide/comparing",
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
    section: Section,
}

const NAVIGATION: [NavEntry; 10] = [
    NavEntry { label: "Dashboard", href: "/", section: Section::Dashboard },
    NavEntry { label: "Runs", href: "/runs", section: Section::Runs },
    NavEntry { label: "Experiments", href: "/experiments", section: Section::Experiments },
    NavEntry { label: "Compare", href: "/compare", section: Section::Compare },
    NavEntry { label: "Trends", href: "/trends", section: Section::Trends },
    NavEntry { label: "Targets", href: "/targets", section: Section::Targets },
    NavEntry { label: "Scenarios", href: "/scenarios", section: Section::Scenarios },
    NavEntry { label: "Sizes", href: "/sizes", section: Section::Sizes },
    NavEntry { label: "Agents", href: "/agents", section: Section::Agents },
    NavEntry { label: "Settings", href: "/settings", section: Section::Settings },
];

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

    /// Whether the page is in the section of an entry.
    pub fn is_at(&self, entry: &NavEntry) -> bool {
        self.section == entry.section
    }
}
