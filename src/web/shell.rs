//! What surrounds every page.

/// What `layout.html` needs; every page's template has it as its field `shell`.
#[derive(Clone, Debug)]
pub struct Shell {
    /// For the browser's tab.
    pub title: String,
    /// Where the page belongs.
    pub section: Section,
    /// Who is logged in.
    pub user: Option<Who>,
}

/// Who looks at a page.
#[derive(Clone, Debug)]
pub struct Who {
    /// The user's name.
    pub name: String,
}

/// Where a page belongs, for the head's navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// What happened and what runs.
    Dashboard,
    /// History and single runs.
    Runs,
    /// Submissions.
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
    /// Machines that measure.
    Agents,
    /// The server itself.
    Settings,
    /// Login, registration, errors.
    Other,
}

/// One entry of the navigation.
#[derive(Clone, Copy, Debug)]
pub struct NavEntry {
    /// The word.
    pub label: &'static str,
    /// Where it leads.
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
    /// For somebody who is logged in.
    pub fn signed_in(title: impl Into<String>, section: Section, name: &str) -> Self {
        Self { title: title.into(), section, user: Some(Who { name: name.to_owned() }) }
    }

    /// For everybody.
    pub fn anonymous(title: impl Into<String>) -> Self {
        Self { title: title.into(), section: Section::Other, user: None }
    }

    /// The entries of the head.
    pub fn navigation(&self) -> &'static [NavEntry] {
        &NAVIGATION
    }

    /// Whether the page belongs to an entry.
    pub fn is_at(&self, entry: &NavEntry) -> bool {
        self.section == entry.section
    }
}
