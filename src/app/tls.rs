//! The server's certificate, which can be changed while it serves.
//!
//! The files are read again and again. A new certificate holds for new connections; those that are there go on. Files that
//! don't fit together, as while one of them is being replaced, leave the certificate that there was.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use brewbench_agent::{
    connection::{
        certificate::{Ending, Left},
        client::prepare_tls,
    },
    wire::now_ms,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the certificate lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: the server's certificate, and those between it and its CA.
    pub chain: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
}

/// A certificate can't be used; each says which file.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file.
    #[error("{0} can't be read: {1}")]
    File(PathBuf, io::Error),
    /// Not what it should be.
    #[error("{0} is no {1} in PEM: {2}")]
    Pem(PathBuf, &'static str, rustls::pki_types::pem::Error),
    /// Nothing in it.
    #[error("{0} has no certificate in it")]
    Empty(PathBuf),
    /// They don't belong together, or are of a kind that is not known.
    #[error("{0} and {1} can't be used together: {2}")]
    Unfit(PathBuf, PathBuf, rustls::Error),
}

/// What the files had in them when they were read.
#[derive(PartialEq, Eq)]
struct Contents {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    fn read(&self) -> Result<Contents, CertificateError> {
        let read = |file: &Path| fs::read(file).map_err(|fault| CertificateError::File(file.to_owned(), fault));
        Ok(Contents { chain: read(&self.chain)?, key: read(&self.key)? })
    }

    fn understand(&self, contents: &Contents) -> Result<Shown, CertificateError> {
        prepare_tls();
        let no_chain = |fault| CertificateError::Pem(self.chain.clone(), "certificate", fault);
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&contents.chain).collect::<Result<_, _>>().map_err(no_chain)?;
        if chain.is_empty() {
            return Err(CertificateError::Empty(self.chain.clone()));
        }
        let ending = chain.first().and_then(|own| Ending::of(own));
        let no_key = |fault| CertificateError::Pem(self.key.clone(), "private key", fault);
        let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(no_key)?;
        let unfit = |fault| CertificateError::Unfit(self.chain.clone(), self.key.clone(), fault);
        let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).map_err(unfit)?;
        // WebSockets begin as HTTP/1.1.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Shown { config: Arc::new(config), ending })
    }
}

/// What those who connect are shown.
#[derive(Clone, Debug)]
struct Shown {
    config: Arc<ServerConfig>,
    ending: Option<Ending>,
}

/// The certificate that is in use, whichever that is by now.
#[derive(Clone, Debug)]
pub struct InUse(watch::Receiver<Shown>);

impl InUse {
    /// When it ends; nothing if that can't be read.
    pub fn ending(&self) -> Option<Ending> {
        self.0.borrow().ending
    }

    /// Shakes hands with it.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.borrow().config))
    }
}

/// A certificate that is read anew when its files change.
#[derive(Debug)]
pub struct Certificate {
    files: CertificateFiles,
    seen: watch::Sender<Shown>,
}

impl Certificate {
    /// Reads it for the first time.
    pub fn open(files: CertificateFiles) -> Result<Self, CertificateError> {
        let shown = files.understand(&files.read()?)?;
        Ok(Self { files, seen: watch::Sender::new(shown) })
    }

    /// For those who want to know of the one that is in use.
    pub fn in_use(&self) -> InUse {
        InUse(self.seen.subscribe())
    }

    /// Looks at its files until told to end, and once a day says of one that is about to end that it is.
    pub async fn keep_fresh(self, end: CancellationToken) {
        let mut clock = interval(LOOK_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Those that are in use may be older by now.
        let mut known: Option<Contents> = None;
        let mut told = None;
        loop {
            tokio::select! {
                () = end.cancelled() => return,
                _ = clock.tick() => {}
            }
            told = self.warn(told);
            // Two small files: no reason to leave this thread. One that is missing for a moment is being replaced.
            let Ok(contents) = self.files.read() else { continue };
            if known.as_ref() == Some(&contents) {
                continue;
            }
            match self.files.understand(&contents) {
                Ok(shown) => {
                    if known.is_some() {
                        tracing::info!(chain = %self.files.chain.display(), "another certificate from now on");
                    }
                    self.seen.send_replace(shown);
                }
                Err(fault) => tracing::warn!(%fault, "the certificate stays as it was"),
            }
            known = Some(contents);
        }
    }

    /// Says of a certificate that is about to end how many days are left, unless that was told; gives what was.
    fn warn(&self, told: Option<(Ending, i64)>) -> Option<(Ending, i64)> {
        let (ending, now_ms) = (self.seen.borrow().ending?, now_ms());
        let new = Some((ending, ending.days(now_ms)));
        if ending.left(now_ms) != Left::Plenty && told != new {
            let chain = self.files.chain.display();
            tracing::warn!(%chain, "the server's certificate {}: renew it", ending.sentence(now_ms));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    #[test]
    fn what_does_not_fit_together_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = CertificateFiles { chain: folder.path().join("chain.pem"), key: folder.path().join("key.pem") };
        let told = |files: &CertificateFiles| Certificate::open(files.clone()).expect_err("no certificate").to_string();
        assert!(told(&files).contains("chain.pem can't be read"));
        let made = || generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let CertifiedKey { cert, signing_key } = made();
        fs::write(&files.chain, "").expect("a file");
        fs::write(&files.key, signing_key.serialize_pem()).expect("a file");
        assert!(told(&files).contains("chain.pem has no certificate in it"));
        fs::write(&files.chain, cert.pem()).expect("a file");
        Certificate::open(files.clone()).expect("a certificate");
        fs::write(&files.key, made().signing_key.serialize_pem()).expect("a file");
        assert!(told(&files).contains("can't be used together"));
        fs::write(&files.key, "no key").expect("a file");
        assert!(told(&files).contains("key.pem is no private key in PEM"));
    }
}
