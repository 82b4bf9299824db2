//! The server's certificate, which is reloaded when its files change.
//!
//! A new certificate applies to new connections. If the files do not match, for example while one of them is being
//! replaced, the current certificate stays in use.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use brewbench_io::{
    certificate::{Expiry, Remaining},
    client::prepare_tls,
};
use brewbench_wire::now_ms;
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

/// How often the files are read.
const RELOAD_EVERY: Duration = Duration::from_secs(1);

/// Files of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The server's certificate and its intermediates, PEM.
    pub chain: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{0} can't be read: {1}")]
    File(PathBuf, io::Error),
    /// A file has the wrong content.
    #[error("{0} is not a {1} in PEM: {2}")]
    Pem(PathBuf, &'static str, rustls::pki_types::pem::Error),
    /// The file has no certificate.
    #[error("{0} contains no certificate")]
    Empty(PathBuf),
    /// Certificate and key do not match, or their type is unsupported.
    #[error("{0} and {1} can't be used together: {2}")]
    Mismatch(PathBuf, PathBuf, rustls::Error),
}

/// Contents of the files.
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

    fn parse(&self, contents: &Contents) -> Result<Parsed, CertificateError> {
        prepare_tls();
        let no_chain = |fault| CertificateError::Pem(self.chain.clone(), "certificate", fault);
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&contents.chain).collect::<Result<_, _>>().map_err(no_chain)?;
        if chain.is_empty() {
            return Err(CertificateError::Empty(self.chain.clone()));
        }
        let ending = chain.first().and_then(|own| Expiry::from_der(own));
        let no_key = |fault| CertificateError::Pem(self.key.clone(), "private key", fault);
        let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(no_key)?;
        let mismatch = |fault| CertificateError::Mismatch(self.chain.clone(), self.key.clone(), fault);
        let mut config =
            ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).map_err(mismatch)?;
        // WebSockets start as HTTP/1.1.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Parsed { config: Arc::new(config), ending })
    }
}

/// A parsed certificate.
#[derive(Clone, Debug)]
struct Parsed {
    config: Arc<ServerConfig>,
    ending: Option<Expiry>,
}

/// Handle to the certificate in use.
#[derive(Clone, Debug)]
pub struct CurrentCertificate(watch::Receiver<Parsed>);

impl CurrentCertificate {
    /// Returns when it expires, if known.
    pub fn ending(&self) -> Option<Expiry> {
        self.0.borrow().ending
    }

    /// Returns an acceptor for TLS handshakes.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.borrow().config))
    }
}

/// A certificate that is reloaded when its files change.
#[derive(Debug)]
pub struct Certificate {
    files: CertificateFiles,
    current: watch::Sender<Parsed>,
}

impl Certificate {
    /// Reads the certificate.
    pub fn open(files: CertificateFiles) -> Result<Self, CertificateError> {
        let parsed = files.parse(&files.read()?)?;
        Ok(Self { files, current: watch::Sender::new(parsed) })
    }

    /// Returns a handle to the certificate in use.
    pub fn in_use(&self) -> CurrentCertificate {
        CurrentCertificate(self.current.subscribe())
    }

    /// Reloads changed files until `end` is cancelled, and warns once a day if the certificate expires soon.
    pub async fn watch(self, end: CancellationToken) {
        let mut clock = interval(RELOAD_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Starts empty, because the files may have changed since the certificate was read.
        let mut known: Option<Contents> = None;
        let mut warned = None;
        loop {
            tokio::select! {
                () = end.cancelled() => return,
                _ = clock.tick() => {}
            }
            warned = self.warn(warned);
            // The files are small enough to block this thread. A missing file is probably being replaced.
            let Ok(contents) = self.files.read() else { continue };
            if known.as_ref() == Some(&contents) {
                continue;
            }
            match self.files.parse(&contents) {
                Ok(parsed) => {
                    if known.is_some() {
                        tracing::info!(chain = %self.files.chain.display(), "reloaded the certificate");
                    }
                    self.current.send_replace(parsed);
                }
                Err(fault) => tracing::warn!(%fault, "failed to reload the certificate; the previous one stays in use"),
            }
            known = Some(contents);
        }
    }

    /// Logs how many days are left if the certificate expires soon and `warned` differs; returns the new state.
    fn warn(&self, warned: Option<(Expiry, i64)>) -> Option<(Expiry, i64)> {
        let (ending, now_ms) = (self.current.borrow().ending?, now_ms());
        let new = Some((ending, ending.days(now_ms)));
        if ending.left(now_ms) != Remaining::Plenty && warned != new {
            let chain = self.files.chain.display();
            tracing::warn!(%chain, "the server's certificate {}; renew it", ending.describe(now_ms));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = CertificateFiles { chain: folder.path().join("chain.pem"), key: folder.path().join("key.pem") };
        let error =
            |files: &CertificateFiles| Certificate::open(files.clone()).expect_err("no certificate").to_string();
        assert!(error(&files).contains("chain.pem can't be read"));
        let generate = || generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let CertifiedKey { cert, signing_key } = generate();
        fs::write(&files.chain, "").expect("a file");
        fs::write(&files.key, signing_key.serialize_pem()).expect("a file");
        assert!(error(&files).contains("chain.pem contains no certificate"));
        fs::write(&files.chain, cert.pem()).expect("a file");
        Certificate::open(files.clone()).expect("a certificate");
        fs::write(&files.key, generate().signing_key.serialize_pem()).expect("a file");
        assert!(error(&files).contains("can't be used together"));
        fs::write(&files.key, "no key").expect("a file");
        assert!(error(&files).contains("key.pem is not a private key in PEM"));
    }
}
