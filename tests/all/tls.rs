//! A server behind a proxy that speaks TLS with a certificate of the team's own CA.

use std::{path::PathBuf, sync::Arc};

use brewbench_agent::client::prepare_tls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use crate::harness::{
    App,
    program::{Done, Running, Tools, brewbench},
    submit::{plan_with, reaches, submit},
};

/// Speaks TLS for a server, as `https://localhost:PORT/`.
struct Proxy {
    url: String,
    /// The CA's certificate.
    ca: PathBuf,
    _folder: TempDir,
    serving: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Proxy {
    async fn before(app: &App) -> Self {
        prepare_tls();
        let (ca, config) = certificates();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, ca).expect("a file");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("https://localhost:{}/", listener.local_addr().expect("bound").port());
        let server = format!("127.0.0.1:{}", app.url.port().expect("a port"));
        let serving = tokio::spawn(pass_on(listener, TlsAcceptor::from(config), server));
        Self { url, ca: file, _folder: folder, serving }
    }
}

/// A CA's certificate, and what a server needs to show one of `localhost` that it signed.
fn certificates() -> (String, Arc<ServerConfig>) {
    let key = || KeyPair::generate().expect("a key");
    let mut of_ca = CertificateParams::new(Vec::new()).expect("no names");
    of_ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    of_ca.distinguished_name.push(DnType::CommonName, format!("the CA {}", uuid::Uuid::now_v7()));
    let ca = CertifiedIssuer::self_signed(of_ca, key()).expect("a CA");
    let own = key();
    let of_server = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let signed = of_server.signed_by(&own, &ca).expect("a certificate");
    let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![signed.der().clone()], secret);
    (ca.pem(), Arc::new(config.expect("a configuration")))
}

async fn pass_on(listener: TcpListener, acceptor: TlsAcceptor, server: String) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, server) = (acceptor.clone(), server.clone());
        tokio::spawn(async move {
            // Who does not trust us hangs up in the middle of the handshake.
            let Ok(mut outside) = acceptor.accept(stream).await else { return };
            let mut inside = TcpStream::connect(server).await.expect("the server");
            let _ = copy_bidirectional(&mut outside, &mut inside).await;
        });
    }
}

#[tokio::test]
async fn commands_trust_the_teams_own_ca_where_they_are_told_of_it_and_nobody_else() {
    let app = App::start().await;
    let proxy = Proxy::before(&app).await;
    let token = app.reader().await.secret().to_owned();
    let list = || {
        let mut command = brewbench(&["run", "list", "--json"]);
        command.env("BREWBENCH_URL", &proxy.url).env("BREWBENCH_TOKEN", &token);
        command
    };
    let mut trusting = list();
    trusting.env("SSL_CERT_FILE", &proxy.ca);
    assert_eq!(Done::of(trusting).await.json(), json!({"runs": []}));

    let other = Proxy::before(&app).await;
    let mut deceived = list();
    deceived.env("SSL_CERT_FILE", &other.ca);
    let said = Done::of(deceived).await.refused(1);
    assert!(said.contains("UnknownIssuer; if its CA is your own, name the CA's file in SSL_CERT_FILE"), "{said}");

    let mut empty = list();
    empty.env("SSL_CERT_FILE", "/dev/null").env("SSL_CERT_DIR", "/nonexistent");
    let said = Done::of(empty).await.refused(1);
    assert!(said.contains("this machine has no CA certificates") && said.contains("SSL_CERT_FILE"), "{said}");
}

fn agent(proxy: &Proxy, key: &str, state: &TempDir, tools: &Tools) -> Command {
    let mut command = brewbench(&["agent", "--server", &proxy.url]);
    command.arg("--state").arg(state.path()).arg("--k6").arg(&tools.k6).env("BREWBENCH_AGENT_KEY", key);
    command
}

#[tokio::test]
async fn an_agent_does_its_work_over_tls() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let proxy = Proxy::before(&app).await;
    let (key, state) = (app.key("far-away").await, tempfile::tempdir().expect("a folder"));
    let mut command = agent(&proxy, &key, &state, &tools);
    command.env("SSL_CERT_FILE", &proxy.ca);
    let agent = Running::start(command);
    agent.says("connected").await;
    let user = app.user().await;
    app.until("the agent", async || {
        let list = user.get("/api/v1/agents").await.ok().json();
        Some(()).filter(|()| list["agents"][0]["connected"] == true)
    })
    .await;
    let (_, runs) = submit(&user, &plan_with(&json!({"targets": ["rust-hyper"]}))).await;
    let run = reaches(&app, &user, &runs[0], "finished").await;
    assert!(run["requests"].as_u64().is_some_and(|requests| requests > 0), "{run}");
}

#[tokio::test]
async fn an_agent_does_not_show_its_key_to_a_server_that_it_does_not_trust() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (proxy, other) = (Proxy::before(&app).await, Proxy::before(&app).await);
    let (key, state) = (app.key("careful").await, tempfile::tempdir().expect("a folder"));
    let mut command = agent(&proxy, &key, &state, &tools);
    command.env("SSL_CERT_FILE", &other.ca);
    let agent = Running::start(command);
    agent.says("name the CA's file in").await;
    let agents = app.reader().await.get("/api/v1/agents").await.ok().json();
    assert_eq!(agents["agents"][0]["connected"], false);
}
