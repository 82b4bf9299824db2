//! The TLS of a load: what is verified, and which protocols are offered.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::plan::{Fault, HttpVersion, Tls, fault};
use crate::target::Target;

/// Time that a target has to say which version of HTTP it prefers.
const PREFERENCE_TIMEOUT: Duration = Duration::from_secs(3);

/// How connections to a target are secured.
#[derive(Clone, Debug)]
pub struct Security {
    /// The settings of all connections.
    pub config: Arc<ClientConfig>,
    /// The name that is sent and verified.
    pub name: ServerName<'static>,
}

impl Security {
    /// Creates it; `None` for a target without TLS.
    pub fn new(tls: &Tls, target: &Target, http: HttpVersion) -> Result<Option<Self>, Fault> {
        if !target.is_tls {
            return Ok(None);
        }
        let Tls { insecure, server_name, ca } = tls;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| fault("tls", error.to_string()))?;
        let mut config = if *insecure {
            let verifier = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        } else {
            builder.with_root_certificates(roots(ca.as_deref())?).with_no_client_auth()
        };
        let offered: &[&[u8]] = match http {
            HttpVersion::Auto => &[b"h2", b"http/1.1"],
            HttpVersion::One => &[b"http/1.1"],
            HttpVersion::Two => &[b"h2"],
        };
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let name = server_name.as_ref().unwrap_or(&target.host);
        let name = ServerName::try_from(name.clone())
            .map_err(|_| fault("url", format!("{name:?} is not a name for TLS: set tls.server_name")))?;
        Ok(Some(Self { config: Arc::new(config), name }))
    }
}

/// Returns the version of HTTP that a target prefers, by connecting once; 1.1 if it does not answer.
pub fn preferred_version(tls: &Tls, target: &Target, address: SocketAddr) -> Result<HttpVersion, Fault> {
    let Some(security) = Security::new(tls, target, HttpVersion::Auto)? else { return Ok(HttpVersion::One) };
    let ask = || -> io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, PREFERENCE_TIMEOUT)?;
        stream.set_read_timeout(Some(PREFERENCE_TIMEOUT))?;
        stream.set_write_timeout(Some(PREFERENCE_TIMEOUT))?;
        let mut connection = ClientConnection::new(security.config, security.name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(connection.alpn_protocol() == Some(b"h2"))
    };
    // A target that fails here fails in the load, too, where it is counted.
    Ok(if ask().unwrap_or(false) { HttpVersion::Two } else { HttpVersion::One })
}

fn roots(ca: Option<&str>) -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = ca else {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            return Err(fault("tls", "this machine has no certificates to trust: install them, or set tls.ca"));
        }
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let added = certificate.map_err(|error| error.to_string());
        let added = added.and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|error| fault("tls.ca", format!("not a certificate: {error}")))?;
    }
    if roots.is_empty() { Err(fault("tls.ca", "there is no certificate in it")) } else { Ok(roots) }
}

/// Accepts any certificate. Signatures are verified: that is part of the work of a handshake.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
