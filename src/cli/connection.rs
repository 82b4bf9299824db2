//! Which server, with which token: flags and environment first, then what `login` kept.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use brewbench_agent::connection::client::{Client, Plain, Trust};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::web::address::segment;

/// To one server. Requests go through [`Connection::client`].
#[derive(Clone, Debug)]
pub struct Connection {
    /// Speaks to it.
    pub client: Client,
}

/// What `login` keeps.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    /// The server's address.
    pub url: Url,
    /// An API token.
    pub token: String,
    /// The file of a CA that is trusted as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Whether somebody said that plain HTTP will do.
    #[serde(default)]
    pub insecure_http: bool,
}

impl Connection {
    /// To the server that is meant; what is not given is taken from the last login.
    pub fn open(url: Option<Url>, token: Option<String>, trust: Trust) -> anyhow::Result<Self> {
        // What is kept belongs to the kept server: no other is shown the token or trusted like it.
        let kept = Kept::load()?.filter(|kept| url.as_ref().is_none_or(|url| *url == kept.url));
        let Some(url) = url.or_else(|| kept.as_ref().map(|kept| kept.url.clone())) else {
            bail!("which server? Log in once with `brewbench login URL`, or set BREWBENCH_URL and BREWBENCH_TOKEN");
        };
        let (token, trust) = match kept {
            Some(kept) => (
                token.or(Some(kept.token)),
                Trust {
                    ca_file: trust.ca_file.or(kept.ca_file),
                    plain: if kept.insecure_http { Plain::Anywhere } else { trust.plain },
                },
            ),
            None => (token, trust),
        };
        Ok(Self { client: Client::trusting(&url, token, &trust)? })
    }
}

impl Kept {
    /// Where it is kept: `$XDG_CONFIG_HOME/brewbench/login.json`, else below `~/.config`.
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
                let kept = serde_json::from_slice(&bytes);
                kept.map(Some).with_context(|| format!("{} is damaged; log in anew", file.display()))
            }
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(fault).with_context(|| format!("{} can't be read", file.display())),
        }
    }

    /// Keeps it, readable by nobody else.
    pub fn save(&self) -> anyhow::Result<PathBuf> {
        let file = Self::file()?;
        let folder = file.parent().context("a file lies in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("{} can't be made", folder.display()))?;
        let draft = file.with_extension("draft");
        let _ = fs::remove_file(&draft);
        let mut open = fs::OpenOptions::new();
        let mut out = open.write(true).create_new(true).mode(0o600).open(&draft)?;
        out.write_all(&serde_json::to_vec_pretty(self)?)?;
        fs::rename(&draft, &file)?;
        Ok(file)
    }
}

/// A name as one segment of a path.
pub fn encoded(name: &str) -> String {
    segment(name)
}
