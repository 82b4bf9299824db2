//! Which server, with which token: flags and environment first, then what `login` kept.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use brewbench_agent::client::Client;
use serde::{Deserialize, Serialize};
use url::Url;

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
}

impl Connection {
    /// To the server that is meant; what is not given is taken from the last login.
    pub fn open(url: Option<Url>, token: Option<String>) -> anyhow::Result<Self> {
        let kept = Kept::load()?;
        let (kept_url, kept_token) = kept.map_or((None, None), |kept| (Some(kept.url), Some(kept.token)));
        // A kept token belongs to the kept server and is shown to no other.
        let kept_token = kept_token.filter(|_| url.is_none() || url == kept_url);
        let Some(url) = url.or(kept_url) else {
            bail!("which server? Log in once with `brewbench login URL`, or set BREWBENCH_URL and BREWBENCH_TOKEN");
        };
        Ok(Self { client: Client::new(&url, token.or(kept_token))? })
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
