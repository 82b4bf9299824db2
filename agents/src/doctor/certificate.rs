//! Checks whether the server's certificate is trusted and for how long, in a separate handshake before any secret is
//! sent.

use std::time::Duration;

use std::io;

use brewbench_io::certificate::{Expiry, Remaining, SOON_DAYS, day};
use brewbench_io::client::Client;
use brewbench_wire::now_ms;
use rustls::CertificateError;
use rustls::pki_types::{ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::finding::Finding;

/// Longest wait for the server's response.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

const WHAT: &str = "certificate";
const RENEW: &str = "renew it on the server, or on the proxy in front of it";

/// Checks the certificate; `None` without TLS, or if the server does not answer.
pub async fn certificate(client: &Client) -> Option<Finding> {
    match timeout(PATIENCE, handshake(client)).await.ok()?? {
        Ok(stream) => {
            Some(trusted(stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).map(AsRef::as_ref)))
        }
        Err(fault) => match fault.get_ref()?.downcast_ref::<rustls::Error>()? {
            rustls::Error::InvalidCertificate(fault) => Some(untrusted(fault)),
            _ => None,
        },
    }
}

async fn handshake(client: &Client) -> Option<io::Result<TlsStream<TcpStream>>> {
    let tls = client.tls()?;
    let host = client.base().host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = TcpStream::connect((host.as_str(), client.base().port_or_known_default()?)).await.ok()?;
    let name = ServerName::try_from(host).ok()?;
    Some(TlsConnector::from(tls).connect(name, stream).await)
}

fn trusted(certificate: Option<&[u8]>) -> Finding {
    let Some(expiry) = certificate.and_then(Expiry::from_der) else {
        return Finding::good(WHAT, "trusted; its expiry can't be read");
    };
    let now_ms = now_ms();
    let observed = format!("trusted; {}", expiry.describe(now_ms));
    match expiry.left(now_ms) {
        Remaining::Plenty => Finding::good(WHAT, observed),
        Remaining::Little | Remaining::Nothing => {
            Finding::doubtful(WHAT, observed, format!("{RENEW}: less than {SOON_DAYS} days are left"))
        }
    }
}

fn untrusted(fault: &CertificateError) -> Finding {
    let (observed, remedy) = match fault {
        CertificateError::ExpiredContext { time, not_after } => {
            let remedy = format!("{RENEW}; or set this machine's clock if today is not {}", day(ms(*time)));
            (Expiry { at_ms: ms(*not_after) }.describe(ms(*time)), remedy)
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let remedy = format!("wait until then; or set this machine's clock if today is not {}", day(ms(*time)));
            (format!("not valid before {}", day(ms(*not_before))), remedy)
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented = if presented.is_empty() { "no name".to_owned() } else { names(presented) };
            let remedy = "use the name in the certificate with --server, or get a certificate for this name";
            (format!("it is for {presented}, not for {}", expected.to_str()), remedy.to_owned())
        }
        // `BadSignature` occurs if the CA has the name of a known one.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            let remedy = "if the server uses your own CA, name its file with --ca-file or in SSL_CERT_FILE; otherwise \
                     the server must send the intermediate certificates, too";
            ("it is not signed by a CA that this machine trusts".to_owned(), remedy.to_owned())
        }
        fault if fault.to_string().contains("CaUsedAsEndEntity") => {
            let remedy = "issue a server certificate (basicConstraints CA:FALSE), and name the CA's with --ca-file";
            ("it is a CA certificate, which a server can't use".to_owned(), remedy.to_owned())
        }
        fault => (fault.to_string(), "replace the server's certificate".to_owned()),
    };
    Finding::bad(WHAT, observed, remedy)
}

fn ms(at: UnixTime) -> i64 {
    i64::try_from(at.as_secs().saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// Formats the names of a certificate, which look like `DnsName("bench.example.com")`.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    presented.iter().map(bare).collect::<Vec<_>>().join(", ")
}
