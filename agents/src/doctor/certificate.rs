//! The server's certificate: whether it is trusted, and for how long. Asked in a handshake of its own, before any secret.

use std::io;

use rustls::CertificateError;
use rustls::pki_types::{ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Sign;
use crate::connection::certificate::{Ending, Left, SOON_DAYS, day};
use crate::connection::client::Client;
use crate::doctor::server::PATIENCE;
use crate::wire::now_ms;

const WHAT: &str = "certificate";
const RENEW: &str = "renew it on the server, or on the proxy before it";

/// What there is to say of it; nothing without TLS, or where nobody answers.
pub(super) async fn certificate(client: &Client) -> Option<Sign> {
    match timeout(PATIENCE, shaken(client)).await.ok()?? {
        Ok(stream) => {
            Some(trusted(stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).map(AsRef::as_ref)))
        }
        Err(fault) => match fault.get_ref()?.downcast_ref::<rustls::Error>()? {
            rustls::Error::InvalidCertificate(fault) => Some(untrusted(fault)),
            _ => None,
        },
    }
}

async fn shaken(client: &Client) -> Option<io::Result<TlsStream<TcpStream>>> {
    let tls = client.tls()?;
    let host = client.base().host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = TcpStream::connect((host.as_str(), client.base().port_or_known_default()?)).await.ok()?;
    let name = ServerName::try_from(host).ok()?;
    Some(TlsConnector::from(tls).connect(name, stream).await)
}

fn trusted(certificate: Option<&[u8]>) -> Sign {
    let Some(ending) = certificate.and_then(Ending::of) else {
        return Sign::good(WHAT, "trusted; when it ends can't be read");
    };
    let now_ms = now_ms();
    let seen = format!("trusted; it {}", ending.sentence(now_ms));
    match ending.left(now_ms) {
        Left::Plenty => Sign::good(WHAT, seen),
        Left::Little | Left::Nothing => {
            Sign::doubtful(WHAT, seen, format!("{RENEW}: fewer than {SOON_DAYS} days are left"))
        }
    }
}

fn untrusted(fault: &CertificateError) -> Sign {
    let (seen, remedy) = match fault {
        CertificateError::ExpiredContext { time, not_after } => {
            let remedy = format!("{RENEW}; or set this machine's clock, if it is not {}", day(ms(*time)));
            (format!("it {}", Ending { at_ms: ms(*not_after) }.sentence(ms(*time))), remedy)
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let remedy = format!("wait until then; or set this machine's clock, if it is not {}", day(ms(*time)));
            (format!("it begins on {} only", day(ms(*not_before))), remedy)
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented = if presented.is_empty() { "no name".to_owned() } else { names(presented) };
            let remedy = "name the server with --server as its certificate does, or get it a certificate of that name";
            (format!("it is for {presented}, and not for {}", expected.to_str()), remedy.to_owned())
        }
        // The latter where the CA is another one of the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            let remedy = "if its CA is your own, name the CA's file by --ca-file or in SSL_CERT_FILE; if not, the server \
                          has to show those between it and its CA, too";
            ("it is not signed by anybody whom this machine trusts".to_owned(), remedy.to_owned())
        }
        fault if fault.to_string().contains("CaUsedAsEndEntity") => {
            let remedy = "let it sign one for the server (basicConstraints CA:FALSE), and name its own by --ca-file";
            ("it is that of a CA, with which nobody may be a server".to_owned(), remedy.to_owned())
        }
        fault => (fault.to_string(), "get the server another one".to_owned()),
    };
    Sign::bad(WHAT, seen, remedy)
}

fn ms(at: UnixTime) -> i64 {
    i64::try_from(at.as_secs().saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// They come as `DnsName("bench.example.com")`.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    presented.iter().map(bare).collect::<Vec<_>>().join(", ")
}
