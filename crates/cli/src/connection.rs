//! The server and token of a command: from flags and environment, else from the stored login.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use brewbench::web::address::segment;
use brewbench_io::client::{Client, Plain, Trust};
use serde::{Deserialize, Serialize};
use url::Url;

/// A connection to one server.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The HTTP client.
    pub client: Client,
}

/// The login that `brewbench login` stores.
#[derive(Serialize, Deserialize)]
pub struct StoredLogin {
    /// The server's address.
    pub url: Url,
    /// An API token.
    pub token: String,
    /// File of an additional trusted CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Whether plain HTTP to another machine is allowed.
    #[serde(default)]
    pub insecure_http: bool,
}

impl Connection {
    /// Connects to a server; missing values come from the stored login.
    pub fn open(url: Option<Url>, token: Option<String>, trust: Trust) -> anyhow::Result<Self> {
        // A secret of a pipeline often ends with a new line.
        let token = token.map(|token| token.trim().to_owned());
        // The stored token and trust apply to the stored server only.
        let stored = StoredLogin::load()?.filter(|stored| url.as_ref().is_none_or(|url| *url == stored.url));
        let Some(url) = url.or_else(|| stored.as_ref().map(|stored| stored.url.clone())) else {
            bail!("no server given; run `brewbench login URL`, or set BREWBENCH_URL and BREWBENCH_TOKEN");
        };
        let (token, trust) = match stored {
            Some(stored) => (
                token.or(Some(stored.token)),
                Trust {
                    ca_file: trust.ca_file.or(stored.ca_file),
                    plain: if stored.insecure_http { Plain::Anywhere } else { trust.plain },
                },
            ),
            None => (token, trust),
        };
        Ok(Self { client: Client::with_trust(&url, token, &trust)? })
    }
}

impl StoredLogin {
    /// Returns its path: `$XDG_CONFIG_HOME/brewbench/login.json`, else below `~/.config`.
    pub fn file() -> anyhow::Result<PathBuf> {
        let config = std::env::var_os("XDG_CONFIG_HOME").filter(|path| Path::new(path).is_absolute());
        let home = || std::env::home_dir().map(|home| home.join(".config"));
        let folder = config.map(PathBuf::from).or_else(home).context("neither XDG_CONFIG_HOME nor HOME is set")?;
        Ok(folder.join("brewbench/login.json"))
    }

    fn load() -> anyhow::Result<Option<Self>> {
        let Ok(file) = Self::file() else { return Ok(None) };
        match fs::read(&file) {
            Ok(bytes) => {
                let stored = serde_json::from_slice(&bytes);
                stored.map(Some).with_context(|| format!("{} is damaged; log in again", file.display()))
            }
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(fault).with_context(|| format!("cannot read {}", file.display())),
        }
    }

    /// Stores the login, readable by its owner only.
    pub fn save(&self) -> anyhow::Result<PathBuf> {
        let file = Self::file()?;
        let folder = file.parent().context("the login file has no parent folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let draft = file.with_extension("draft");
        let _ = fs::remove_file(&draft);
        let mut open = fs::OpenOptions::new();
        let mut out = open.write(true).create_new(true).mode(0o600).open(&draft)?;
        out.write_all(&serde_json::to_vec_pretty(self)?)?;
        fs::rename(&draft, &file)?;
        Ok(file)
    }
}

/// Encodes a name as one segment of a URL path.
pub fn encoded(name: &str) -> String {
    segment(name)
}
