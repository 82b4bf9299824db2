//! TLS with a certificate of a private CA: on a reverse proxy and on the server itself.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use brewbench::{app::tls::CertificateFiles, auth::model::Scope};
use brewbench_io::client::prepare_tls;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use crate::harness::{
    Actor, App,
    program::{Output, Running, Tools, brewbench},
    submit::{plan_with, reaches, submit, text},
};

/// A TLS proxy of a server at `https://localhost:PORT/`.
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
    async fn start(app: &App) -> Self {
        Self::with_certificate(app, generate()).await
    }

    async fn with_certificate(app: &App, generated: Generated) -> Self {
        prepare_tls();
        let (ca, config) = certificates(generated);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, ca).expect("a file");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("https://localhost:{}/", listener.local_addr().expect("bound").port());
        let server = format!("127.0.0.1:{}", app.url.port().expect("a port"));
        let serving = tokio::spawn(forward(listener, TlsAcceptor::from(config), server));
        Self { url, ca: file, _folder: folder, serving }
    }
}

/// A certificate of `localhost`, signed by a CA of its own.
struct Generated {
    /// Of the CA, PEM.
    ca: String,
    /// Of the server, PEM.
    chain: String,
    der: CertificateDer<'static>,
    key: KeyPair,
}

fn generate() -> Generated {
    generate_with(|_| {})
}

/// Generates a certificate with changed parameters.
fn generate_with(change: impl FnOnce(&mut CertificateParams)) -> Generated {
    let key = || KeyPair::generate().expect("a key");
    let mut ca_params = CertificateParams::new(Vec::new()).expect("no names");
    ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca_params.distinguished_name.push(DnType::CommonName, format!("the CA {}", uuid::Uuid::now_v7()));
    let ca = CertifiedIssuer::self_signed(ca_params, key()).expect("a CA");
    let own = key();
    let mut server_params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    change(&mut server_params);
    let signed = server_params.signed_by(&own, &ca).expect("a certificate");
    Generated { ca: ca.pem(), chain: signed.pem(), der: signed.der().clone(), key: own }
}

/// The CA's certificate, and the TLS configuration of a server with the certificate of `localhost`.
fn certificates(generated: Generated) -> (String, Arc<ServerConfig>) {
    let Generated { ca, der, key, .. } = generated;
    let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![der], secret);
    (ca, Arc::new(config.expect("a configuration")))
}

async fn forward(listener: TcpListener, acceptor: TlsAcceptor, server: String) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, server) = (acceptor.clone(), server.clone());
        tokio::spawn(async move {
            // A client that does not trust the CA aborts the handshake.
            let Ok(mut outside) = acceptor.accept(stream).await else { return };
            let mut inside = TcpStream::connect(server).await.expect("the server");
            let _ = copy_bidirectional(&mut outside, &mut inside).await;
        });
    }
}

#[tokio::test]
async fn commands_trust_a_private_ca_only_if_it_is_configured() {
    let app = App::start().await;
    let proxy = Proxy::start(&app).await;
    let token = app.reader().await.secret().to_owned();
    let list = || {
        let mut command = brewbench(&["run", "list", "--json"]);
        command.env("BREWBENCH_URL", &proxy.url).env("BREWBENCH_TOKEN", &token);
        command
    };
    let mut trusting = list();
    trusting.env("SSL_CERT_FILE", &proxy.ca);
    assert_eq!(Output::of(trusting).await.json(), json!({"runs": [], "next": null}));
    let mut configured = list();
    configured.arg("--ca-file").arg(&proxy.ca).env("SSL_CERT_FILE", "/dev/null").env("SSL_CERT_DIR", "/nonexistent");
    assert_eq!(Output::of(configured).await.json(), json!({"runs": [], "next": null}));

    let other = Proxy::start(&app).await;
    let mut deceived = list();
    deceived.env("SSL_CERT_FILE", &other.ca);
    let error = Output::of(deceived).await.refused(1);
    assert!(
        error.contains(
            "UnknownIssuer; if the server uses your own CA, name its file in SSL_CERT_FILE or with --ca-file"
        ),
        "{error}"
    );

    let mut empty = list();
    empty.env("SSL_CERT_FILE", "/dev/null").env("SSL_CERT_DIR", "/nonexistent");
    let error = Output::of(empty).await.refused(1);
    assert!(error.contains("this machine has no CA certificates") && error.contains("SSL_CERT_FILE"), "{error}");
}

#[tokio::test]
async fn a_login_stores_the_ca_file() {
    let app = App::start().await;
    let proxy = Proxy::start(&app).await;
    let (token, home) = (app.reader().await.secret().to_owned(), tempfile::tempdir().expect("a folder"));
    let alone = |arguments: &[&str]| {
        let mut command = brewbench(arguments);
        command
            .env("XDG_CONFIG_HOME", home.path())
            .env("SSL_CERT_FILE", "/dev/null")
            .env("SSL_CERT_DIR", "/nonexistent");
        command
    };
    let (ca, folder) = (proxy.ca.file_name().expect("a name"), proxy.ca.parent().expect("a folder"));
    let mut login = alone(&["login", &proxy.url, "--token", &token, "--ca-file"]);
    login.arg(ca).current_dir(folder);
    Output::of(login).await.ok();
    assert_eq!(Output::of(alone(&["run", "list", "--json"])).await.json(), json!({"runs": [], "next": null}));
    let other = Proxy::start(&app).await;
    let error = Output::of(alone(&["run", "list", "--url", &other.url])).await.refused(1);
    assert!(error.contains("no CA certificates"), "{error}");
}

fn agent(proxy: &Proxy, key: &str, state: &TempDir, tools: &Tools) -> Command {
    let mut command = brewbench(&["agent", "--server", &proxy.url]);
    command.arg("--state").arg(state.path()).arg("--k6").arg(&tools.k6).env("BREWBENCH_AGENT_KEY", key);
    command
}

#[tokio::test]
async fn an_agent_runs_over_tls() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let proxy = Proxy::start(&app).await;
    let (key, state) = (app.key("far-away").await, tempfile::tempdir().expect("a folder"));
    let mut command = agent(&proxy, &key, &state, &tools);
    command.arg("--ca-file").arg(&proxy.ca).args(["--log", "json"]);
    let agent = Running::start(command);
    agent.wait_for("connected").await;
    let user = app.user().await;
    app.until("the agent", async || {
        let list = user.get("/api/v1/agents").await.ok().json();
        Some(()).filter(|()| list["agents"][0]["connected"] == true)
    })
    .await;
    let (_, runs) = submit(&user, &plan_with(&json!({"targets": ["rust-hyper"]}))).await;
    let run = reaches(&app, &user, &runs[0], "finished").await;
    assert!(run["requests"].as_u64().is_some_and(|requests| requests > 0), "{run}");
    // Log lines about a run have its id.
    let log = agent.stderr();
    let line = log.lines().find(|line| line.contains("run ended")).expect("a line");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["spans"], json!([{"name": "run", "id": runs[0]}]));
}

#[tokio::test]
async fn an_agent_does_not_send_its_key_to_an_untrusted_server() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (proxy, other) = (Proxy::start(&app).await, Proxy::start(&app).await);
    let (key, state) = (app.key("careful").await, tempfile::tempdir().expect("a folder"));
    let mut command = agent(&proxy, &key, &state, &tools);
    command.env("SSL_CERT_FILE", &other.ca);
    let agent = Running::start(command);
    agent.wait_for("name its file in SSL_CERT_FILE").await;
    let agents = app.reader().await.get("/api/v1/agents").await.ok().json();
    assert_eq!(agents["agents"][0]["connected"], false);
}

/// The doctor's findings about a proxy's certificate and the server behind it.
async fn findings_about(proxy: &Proxy, trusted: &Path) -> [Value; 2] {
    let state = tempfile::tempdir().expect("a folder");
    let mut command = brewbench(&["agent", "doctor", "--server", &proxy.url, "--key", "bba_x", "--json"]);
    command.arg("--state").arg(state.path()).args(["--k6", "/nonexistent/k6", "--ca-file"]).arg(trusted);
    let findings: Value = serde_json::from_str(&Output::of(command).await.out).expect("JSON");
    ["certificate", "server"].map(|what| {
        let finding = findings.as_array().expect("findings").iter().find(|finding| finding["check"] == what);
        finding.unwrap_or_else(|| panic!("no finding about {what}: {findings}")).clone()
    })
}

#[tokio::test]
async fn the_doctor_reports_the_expiry_of_the_certificate_and_why_it_is_untrusted() {
    let app = App::start().await;
    let (now, days) = (OffsetDateTime::now_utc(), time::Duration::days);
    let ending = |at: OffsetDateTime| {
        generate_with(|it| (it.not_before, it.not_after) = (now - days(90), at + time::Duration::minutes(10)))
    };
    let date = |at: OffsetDateTime| (at + time::Duration::minutes(10)).date().to_string();
    let cases = [
        (ending(now + days(60)), "good", format!("trusted; expires on {}, in 60 days", date(now + days(60))), ""),
        (
            ending(now + days(9)),
            "doubtful",
            format!("trusted; expires on {}, in 9 days", date(now + days(9))),
            "renew it",
        ),
        (ending(now - days(9)), "bad", format!("expired on {}, 8 days ago", date(now - days(9))), "renew it"),
        (
            generate_with(|it| {
                it.subject_alt_names = vec![SanType::DnsName("bench.example.com".try_into().expect("a name"))];
            }),
            "bad",
            "it is for bench.example.com, not for localhost".to_owned(),
            "--server",
        ),
        (
            generate_with(|it| it.not_before = now + days(2)),
            "bad",
            format!("not valid before {}", (now + days(2)).date()),
            "this machine's clock",
        ),
        (
            generate_with(|it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)),
            "bad",
            "it is a CA certificate, which a server can't use".to_owned(),
            "CA:FALSE",
        ),
    ];
    for (generated, rank, observed, remedy) in cases {
        let proxy = Proxy::with_certificate(&app, generated).await;
        let [certificate, server] = findings_about(&proxy, &proxy.ca).await;
        assert_eq!((text(&certificate["rank"]), text(&certificate["observed"])), (rank.to_owned(), observed));
        assert!(certificate["remedy"].as_str().unwrap_or_default().contains(remedy), "{certificate}");
        assert_eq!(server["rank"] == "bad", rank == "bad", "{server}");
    }
    let (proxy, other) = (Proxy::start(&app).await, Proxy::start(&app).await);
    let [certificate, server] = findings_about(&proxy, &other.ca).await;
    assert_eq!(text(&certificate["observed"]), "it is not signed by a CA that this machine trusts");
    assert!(text(&certificate["remedy"]).contains("--ca-file"), "{certificate}");
    assert!(text(&server["observed"]).starts_with("not checked"), "{server}");
}

#[tokio::test]
async fn metrics_have_the_expiry_of_the_certificate_and_the_log_warns_before_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let end = OffsetDateTime::now_utc() + time::Duration::days(9) + time::Duration::minutes(10);
    let (files, ca) = files_of(generate_with(|it| it.not_after = end), folder.path());
    let app = App::with(|config| config.tls = Some(files.clone())).await;
    let token = app.token_secret(Scope::Read, None).await;
    let metrics = async |ca: &str| {
        let answer = trusting(&app, ca, "metrics", &token).send().await.ok()?;
        answer.error_for_status().expect("metrics").text().await.ok()
    };
    let line =
        |end: OffsetDateTime| format!("brewbench_certificate_expiry_timestamp_seconds {}.0\n", end.unix_timestamp());
    assert!(metrics(&ca).await.expect("metrics").contains(&line(end)));
    let later = end + time::Duration::days(90);
    let (_, ca) = files_of(generate_with(|it| it.not_after = later), folder.path());
    let renewed = app.until("the new certificate", async || metrics(&ca).await).await;
    assert!(renewed.contains(&line(later)), "{renewed}");

    files_of(generate_with(|it| it.not_after = end), folder.path());
    let data = folder.path().join("data").display().to_string();
    let mut serve = brewbench(&["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    serve.arg("--tls-cert").arg(&files.chain).arg("--tls-key").arg(&files.key);
    let server = Running::start(serve);
    server.wait_for(&format!("the server's certificate expires on {}, in 9 days; renew it", end.date())).await;
}

/// Writes a certificate of `localhost` and its key to a folder; returns its CA, PEM.
fn certificate_in(folder: &Path) -> (CertificateFiles, String) {
    files_of(generate(), folder)
}

fn files_of(generated: Generated, folder: &Path) -> (CertificateFiles, String) {
    let files = CertificateFiles { chain: folder.join("chain.pem"), key: folder.join("key.pem") };
    fs::write(&files.key, generated.key.serialize_pem()).expect("a file");
    fs::write(&files.chain, &generated.chain).expect("a file");
    (files, generated.ca)
}

/// A request of a client that trusts only this CA.
fn trusting(app: &App, ca: &str, path: &str, token: &str) -> reqwest::RequestBuilder {
    let ca = reqwest::Certificate::from_pem(ca.as_bytes()).expect("a certificate");
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().expect("a client");
    let port = app.url.port().expect("a port");
    http.get(format!("https://localhost:{port}/{path}")).bearer_auth(token)
}

#[tokio::test]
async fn a_server_serves_tls_and_reloads_its_certificate_without_dropping_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, first) = certificate_in(folder.path());
    let app = App::with(|config| config.tls = Some(files)).await;
    assert_eq!((app.url.scheme(), app.state.public_url.scheme()), ("https", "https"));
    let token = app.token_secret(Scope::Read, None).await;
    // A silent connection delays no other.
    let _silent = TcpStream::connect(("127.0.0.1", app.url.port().expect("a port"))).await.expect("a connection");
    let request = trusting(&app, &first, "api/v1/runs", &token);
    let second_request = request.try_clone().expect("a request");
    assert!(request.send().await.expect("an answer").status().is_success());

    let plain = Actor::anonymous(&app.url.as_str().replacen("https", "http", 1).parse().expect("an address"));
    plain.request(&reqwest::Method::GET, "/healthz").send().await.expect_err("no TLS, no answer");

    // A new key without its certificate is ignored.
    fs::write(folder.path().join("key.pem"), generate().key.serialize_pem()).expect("a file");
    let (_, second) = certificate_in(folder.path());
    app.until("the new certificate", async || trusting(&app, &second, "api/v1/runs", &token).send().await.ok()).await;
    assert!(second_request.send().await.expect("the open connection still works").status().is_success());
    let reconnected = trusting(&app, &first, "api/v1/runs", &token).send().await;
    assert!(reconnected.is_err(), "new connections get the new certificate");
}

#[tokio::test]
async fn a_server_names_the_invalid_certificate_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, _) = certificate_in(folder.path());
    let data = folder.path().join("data").display().to_string();
    let serve = |cert: &Path, key: &Path| {
        let mut command = brewbench(&["serve", "--listen", "127.0.0.1:0", "--data", &data]);
        command.arg("--tls-cert").arg(cert).arg("--tls-key").arg(key);
        command
    };
    let error = Output::of(serve(&files.chain, &folder.path().join("nothing"))).await.refused(1);
    assert!(error.contains("nothing can't be read"), "{error}");
    let error = Output::of(serve(&files.key, &files.key)).await.refused(1);
    assert!(error.contains("key.pem contains no certificate"), "{error}");
    let error = Output::of(brewbench(&["serve", "--data", &data, "--tls-cert", "x"])).await.refused(2);
    assert!(error.contains("--tls-key"), "{error}");
}

#[tokio::test]
async fn plain_http_to_another_machine_is_refused_before_a_secret_is_sent() {
    // An address reserved for documentation, to which nothing is sent.
    let run = |more: &[&str]| {
        let mut command = brewbench(&[&["run", "list", "--url", "http://192.0.2.1/"], more].concat());
        command.env("BREWBENCH_TOKEN", "bbt_x");
        command
    };
    let error = Output::of(run(&[])).await.refused(1);
    assert!(error.contains("plain HTTP exposes secrets") && error.contains("--insecure-http"), "{error}");
    let state = tempfile::tempdir().expect("a folder");
    if let Some(tools) = Tools::find() {
        let mut command = brewbench(&["agent", "--server", "http://192.0.2.1/"]);
        command.arg("--state").arg(state.path()).arg("--k6").arg(&tools.k6).env("BREWBENCH_AGENT_KEY", "bba_x");
        let error = Output::of(command).await.refused(1);
        assert!(error.contains("--insecure-http"), "{error}");
    }
}
