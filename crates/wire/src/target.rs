//! How a target is provided, and what identifies it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum bytes of the name of an image.
const MAX_IMAGE: usize = 300;

/// Maximum bytes of the explanation why something is unknown.
const MAX_WHY: usize = 500;

/// Maximum bytes of a URL.
const MAX_URL: usize = 500;

/// How a target is provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A program that the agent starts.
    Process,
    /// A container that the agent starts.
    Container,
    /// A virtual machine that the agent starts.
    Vm,
    /// A server that already runs.
    Url,
    /// A Pod of a Kubernetes cluster.
    Kubernetes,
}

impl TargetKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Process, Self::Container, Self::Vm, Self::Url, Self::Kubernetes];

    /// Whether it runs outside the agent's machine: it uses nothing of that, and only this agent may load it.
    pub fn is_elsewhere(self) -> bool {
        matches!(self, Self::Url | Self::Kubernetes)
    }

    /// Whether several equal instances of it can share the load.
    pub fn may_replicate(self) -> bool {
        self == Self::Kubernetes
    }

    /// Returns the name in manifests, columns and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Container => "container",
            Self::Vm => "vm",
            Self::Url => "url",
            Self::Kubernetes => "kubernetes",
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TargetKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = Self::ALL.map(Self::as_str);
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not a kind of target: use one of {}", names.join(", ")))
    }
}

/// What identifies a target of each kind. The same program has the same identity on every machine; behind a URL there
/// may be another one each day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Identity {
    /// A program.
    Process {
        /// SHA-256 of the executable, in hex.
        sha256: String,
        /// Everything that decides how it behaves; `None` from older agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
    /// A container.
    Container {
        /// Name of its image, as in the manifest.
        image: String,
        /// The image's id, once a run has resolved the name: a digest, with its algorithm.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// What the manifest adds: arguments, variables and mounted files; `None` if nothing, or from older agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<Code>,
    },
    /// A virtual machine.
    Vm {
        /// SHA-256 of its launcher and the files that its command names, in hex.
        sha256: String,
        /// The same with its settings; `None` from older agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
    },
    /// A server that already runs.
    Url {
        /// Its base URL.
        base: String,
    },
    /// A Pod.
    Kubernetes {
        /// Name of its image, as in the manifest or its template.
        image: String,
        /// The image's digest, once a run has resolved the name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The template of the Pod; `None` from older agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        settings: Option<Code>,
    },
}

/// What decides how a target behaves, as far as its agent can read it: files, arguments and environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// SHA-256 of it, in hex.
    pub sha256: String,
    /// What else decides it but can't be read, as a part of a sentence; `None` if nothing is known to be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

/// Start of an identity that covers everything which decides how a target behaves.
pub const IDENTIFIED: &str = "code:";

/// Start of an identity that is known to miss something.
pub const PARTIAL: &str = "part:";

/// Digits of a digest of settings beside the id of an image.
const SETTINGS_DIGITS: usize = 16;

impl Code {
    /// Returns it as text that says whether it is complete.
    fn text(&self) -> String {
        format!("{}{}", if self.unknown.is_none() { IDENTIFIED } else { PARTIAL }, self.sha256)
    }

    fn is_valid(&self) -> bool {
        let Self { sha256, unknown } = self;
        is_sha256(sha256) && unknown.as_ref().is_none_or(|why| why.len() <= MAX_WHY && !why.contains('\n'))
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Identity {
    /// Returns the kind.
    pub fn kind(&self) -> TargetKind {
        match self {
            Self::Process { .. } => TargetKind::Process,
            Self::Container { .. } => TargetKind::Container,
            Self::Vm { .. } => TargetKind::Vm,
            Self::Url { .. } => TargetKind::Url,
            Self::Kubernetes { .. } => TargetKind::Kubernetes,
        }
    }

    /// Returns the identity as text: a digest, the name of an image, or a URL. Equal texts mean equal behaviour, unless
    /// they start with [`PARTIAL`]; texts of older agents are bare digests.
    pub fn text(&self) -> String {
        match self {
            Self::Process { sha256, code } | Self::Vm { sha256, code } => {
                code.as_ref().map_or_else(|| sha256.clone(), Code::text)
            }
            Self::Container { image, id, settings } | Self::Kubernetes { image, id, settings } => {
                let image = id.as_ref().unwrap_or(image);
                match settings {
                    Some(Code { sha256, unknown }) => {
                        let start = if unknown.is_some() { PARTIAL } else { "" };
                        format!("{start}{image}+{}", sha256.chars().take(SETTINGS_DIGITS).collect::<String>())
                    }
                    None => image.clone(),
                }
            }
            Self::Url { base } => base.clone(),
        }
    }

    /// Returns it with the id of its image.
    #[must_use]
    pub fn resolved(self, image_id: Option<String>) -> Self {
        match self {
            Self::Container { image, settings, .. } => Self::Container { image, id: image_id, settings },
            Self::Kubernetes { image, settings, .. } => Self::Kubernetes { image, id: image_id, settings },
            Self::Process { .. } | Self::Vm { .. } | Self::Url { .. } => self,
        }
    }

    /// Returns what decides how the target behaves beyond what names it.
    pub fn code(&self) -> Option<&Code> {
        match self {
            Self::Process { code, .. } | Self::Vm { code, .. } => code.as_ref(),
            Self::Container { settings, .. } | Self::Kubernetes { settings, .. } => settings.as_ref(),
            Self::Url { .. } => None,
        }
    }

    /// Explains why it is invalid; the sentence starts with the field.
    pub fn fault(&self) -> Option<String> {
        if self.code().is_some_and(|code| !code.is_valid()) {
            return Some("code: 64 hexadecimal digits, and at most a line on what is unknown".to_owned());
        }
        match self {
            Self::Process { sha256, .. } | Self::Vm { sha256, .. } => {
                (!is_sha256(sha256)).then(|| "sha256: 64 hexadecimal digits".to_owned())
            }
            Self::Container { image, id, .. } | Self::Kubernetes { image, id, .. } => {
                let is_word = |text: &String| {
                    !text.is_empty() && text.len() <= MAX_IMAGE && text.bytes().all(|byte| byte.is_ascii_graphic())
                };
                let is_valid = is_word(image) && id.as_ref().is_none_or(is_word);
                (!is_valid).then(|| format!("{}.image: a name of at most {MAX_IMAGE} characters", self.kind()))
            }
            Self::Url { base } => {
                let is_url = base.starts_with("http://") || base.starts_with("https://");
                let is_valid = is_url && base.len() <= MAX_URL && !base.contains(char::is_control);
                (!is_valid).then(|| format!("url.base: an http or https URL of at most {MAX_URL} bytes"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_names_its_kind_on_the_wire() {
        let url = Identity::Url { base: "https://staging.example/api".to_owned() };
        let text = serde_json::to_string(&url).expect("a text");
        assert_eq!(text, r#"{"kind":"url","base":"https://staging.example/api"}"#);
        assert_eq!(serde_json::from_str::<Identity>(&text).expect("an identity"), url);
        let image = Identity::Container { image: "shop:1".to_owned(), id: None, settings: None };
        let text = serde_json::to_string(&image).expect("a text");
        assert_eq!((text, image.text()), (r#"{"kind":"container","image":"shop:1"}"#.to_owned(), "shop:1".to_owned()));
        let settings = Some(Code { sha256: "12".repeat(32), unknown: None });
        let resolved = Identity::Container { image: "shop:1".to_owned(), id: Some("sha256:ab".to_owned()), settings };
        assert_eq!(resolved.text(), "sha256:ab+1212121212121212");
        let old = r#"{"kind":"process","sha256":"00"}"#;
        assert_eq!(serde_json::from_str::<Identity>(old).expect("of an older agent").text(), "00");
        let code = |unknown: Option<&str>| {
            let code = Code { sha256: "cd".repeat(32), unknown: unknown.map(str::to_owned) };
            Identity::Process { sha256: "ab".repeat(32), code: Some(code) }.text()
        };
        assert_eq!(
            (code(None), code(Some("x"))),
            (format!("code:{0}{0}", "cd".repeat(16)), format!("part:{0}{0}", "cd".repeat(16)))
        );
        for kind in TargetKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!(
            "pod".parse::<TargetKind>(),
            Err("\"pod\" is not a kind of target: use one of process, container, vm, url, kubernetes".to_owned())
        );
    }

    #[test]
    fn invalid_identities_have_a_fault() {
        let url = |base: &str| Identity::Url { base: base.to_owned() };
        let process = |sha256: &str| Identity::Process { sha256: sha256.to_owned(), code: None };
        for good in [process(&"ab".repeat(32)), url("http://[::1]:80"), url("https://x")] {
            assert_eq!(good.fault(), None, "{good:?}");
        }
        for bad in [process("00"), url("javascript:x"), url("http://a\n"), url(&format!("http://{}", "x".repeat(500)))]
        {
            assert!(bad.fault().is_some(), "{bad:?}");
        }
    }
}
