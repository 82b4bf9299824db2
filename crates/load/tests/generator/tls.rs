//! Targets with TLS.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use brewbench_load::events::Summary;
use brewbench_load::plan::{HttpVersion, Plan, Tls};
use brewbench_load::tally::Failure;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::server::OK;
use super::{closed, run};

/// A certificate for `localhost` and `other.test`, and its settings.
pub fn certificate(protocols: &[&[u8]]) -> (String, Arc<ServerConfig>) {
    let names = vec!["localhost".to_owned(), "other.test".to_owned()];
    let certified = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let chain = vec![CertificateDer::from(certified.cert.der().to_vec())];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let mut config = config.with_no_client_auth().with_single_cert(chain, key).expect("a configuration");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    (certified.cert.pem(), Arc::new(config))
}

/// A server with HTTP/1.1 over TLS.
struct Server {
    port: u16,
    ca: String,
    responses: Arc<AtomicU64>,
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl Server {
    fn start() -> Self {
        let (ca, config) = certificate(&[b"http/1.1"]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Self { port, ca, responses: Arc::default(), names: Arc::default() };
        let (responses, names) = (Arc::clone(&server.responses), Arc::clone(&server.names));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, responses, names) = (Arc::clone(&config), Arc::clone(&responses), Arc::clone(&names));
                thread::spawn(move || {
                    let connection = ServerConnection::new(config).ok()?;
                    let mut stream = StreamOwned::new(connection, stream);
                    let mut buffer = vec![0; 65_536];
                    loop {
                        stream.read(&mut buffer).ok().filter(|&length| length > 0)?;
                        let name = stream.conn.server_name().unwrap_or_default().to_owned();
                        names.lock().ok()?.insert(name);
                        responses.fetch_add(1, Ordering::SeqCst);
                        stream.write_all(OK.as_bytes()).ok()?;
                    }
                    #[expect(unreachable_code, reason = "gives the closure its type")]
                    Some(())
                });
            }
        });
        server
    }

    fn plan(&self, tls: Tls) -> Plan {
        let mut plan = Plan::get(&format!("https://localhost:{}", self.port), "/", closed(2));
        plan.connect_to = Some(([127, 0, 0, 1], self.port).into());
        plan.list.think_time_ms = 2;
        plan.list.tls = tls;
        plan
    }
}

fn assert_succeeds(server: &Server, summary: &Summary) {
    assert_eq!((summary.failed, summary.requests), (0, server.responses.load(Ordering::SeqCst)), "{summary:?}");
    assert_eq!((summary.opened, summary.http.as_str()), (2, "1.1"));
    // Encrypted bytes are counted.
    assert!(summary.bytes_in > summary.requests * (OK.len() as u64 + 20));
}

#[test]
fn certificates_are_verified_against_the_name() {
    let server = Server::start();
    let tls = Tls { ca: Some(server.ca.clone()), ..Tls::default() };
    let (_, summary) = run(&server.plan(tls.clone()));
    assert_succeeds(&server, &summary);
    let before = server.responses.load(Ordering::SeqCst);
    for tls in [
        Tls { server_name: Some("wrong.test".to_owned()), ..tls },
        Tls { ca: Some(certificate(&[]).0), ..Tls::default() },
    ] {
        let (_, summary) = run(&server.plan(tls));
        assert!(summary.requests > 0, "{summary:?}");
        assert_eq!(summary.errors_of(Failure::Connect), summary.requests, "{:?}", summary.errors);
        assert!(summary.errors["connect"].first.as_ref().is_some_and(|text| text.contains("certificate")));
    }
    assert_eq!(server.responses.load(Ordering::SeqCst), before);
}

#[test]
fn verification_can_be_off_and_the_name_another_one() {
    let server = Server::start();
    let tls = Tls { insecure: true, server_name: Some("any.test".to_owned()), ca: None };
    let mut plan = server.plan(tls);
    plan.list.http = HttpVersion::One;
    let (_, summary) = run(&plan);
    assert_succeeds(&server, &summary);
    assert_eq!(*server.names.lock().expect("names"), BTreeSet::from(["any.test".to_owned()]));
}
