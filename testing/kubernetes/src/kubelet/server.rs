//! The kubelet's HTTPS server, which the API server calls for node proxies and logs.

use std::{convert::Infallible, io::SeekFrom, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    header::CONTENT_TYPE,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use serde_json::json;
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::{node::Node, stats};

/// Time between looks at the log of a running container.
const FOLLOW: Duration = Duration::from_millis(100);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Returns the TLS side of the server.
///
/// Nobody has signed its certificate, and the API server does not check it.
pub fn acceptor(names: Vec<String>) -> Result<TlsAcceptor, String> {
    let signed = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.with_no_client_auth();
    let config = config.with_single_cert(vec![signed.cert.into()], key).map_err(|error| error.to_string())?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves for ever.
pub async fn serve(node: Arc<Node>, listener: TcpListener, acceptor: TlsAcceptor) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (node, acceptor) = (Arc::clone(&node), acceptor.clone());
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let answer = |request| {
                let node = Arc::clone(&node);
                async move { Ok::<_, Infallible>(answer(&node, &request).await) }
            };
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(node: &Arc<Node>, request: &Request<Incoming>) -> Response<Body> {
    let age = node.options.stats_interval;
    let path: Vec<_> = request.uri().path().trim_matches('/').split('/').collect();
    match path.as_slice() {
        ["healthz"] => respond("text/plain", "ok"),
        ["stats", "summary"] => respond("application/json", node.summary.get(age, || stats::summary(node).to_string())),
        ["metrics", "cadvisor"] => {
            respond("text/plain; version=0.0.4", node.cadvisor.get(age, || stats::cadvisor(node)))
        }
        ["configz"] => {
            let config = json!({"kubeletconfig": {"cpuManagerPolicy": node.options.cpu_manager_policy}});
            respond("application/json", config.to_string())
        }
        ["containerLogs", namespace, pod, container] => {
            let options = LogOptions::parse(request.uri().query().unwrap_or_default());
            logs(node, [namespace, pod, container].map(|&name| name.to_owned()), options).await
        }
        _ => not_found("404 page not found"),
    }
}

/// What a reader wants of a log.
#[derive(Clone, Copy, Debug, Default)]
struct LogOptions {
    follow: bool,
    previous: bool,
    tail_lines: Option<usize>,
}

impl LogOptions {
    fn parse(query: &str) -> Self {
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        Self {
            follow: value("follow") == Some("true"),
            previous: value("previous") == Some("true"),
            tail_lines: value("tailLines").and_then(|lines| lines.parse().ok()),
        }
    }
}

async fn logs(node: &Arc<Node>, names: [String; 3], options: LogOptions) -> Response<Body> {
    let [namespace, pod, container] = &names;
    let view = node.container(namespace, pod, container);
    let log = view.and_then(|view| if options.previous { view.previous_log } else { Some(view.log) });
    let Some(log) = log else {
        return not_found(&format!("container \"{container}\" in pod \"{pod}\" has no log"));
    };
    let Ok(mut file) = File::open(&log).await else { return not_found("no log") };
    let mut content = Vec::new();
    if file.read_to_end(&mut content).await.is_err() {
        return not_found("no log");
    }
    let end = content.len() as u64;
    let start = options.tail_lines.map_or(0, |lines| tail(&content, lines));
    let first = content.split_off(start);
    if !options.follow || options.previous {
        return respond("text/plain", first);
    }
    let state = (Arc::clone(node), names, file, end);
    let rest = stream::unfold(state, |(node, names, mut file, end)| async move {
        let (mut read, end) = more(&node, &names, &mut file, end).await?;
        let bytes = Bytes::from(std::mem::take(&mut read));
        Some((bytes, (node, names, file, end)))
    });
    let frames = stream::once(async { Bytes::from(first) }).chain(rest).map(|bytes| Ok(Frame::data(bytes)));
    Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)))
}

/// Waits for more of a log; `None` once the container has exited.
async fn more(node: &Node, names: &[String; 3], file: &mut File, end: u64) -> Option<(Vec<u8>, u64)> {
    let [namespace, pod, container] = names;
    loop {
        let is_running = node.container(namespace, pod, container).is_some_and(|view| view.running.is_some());
        let mut read = Vec::new();
        file.seek(SeekFrom::Start(end)).await.ok()?;
        file.read_to_end(&mut read).await.ok()?;
        if !read.is_empty() {
            let end = end + read.len() as u64;
            return Some((read, end));
        }
        if !is_running {
            return None;
        }
        tokio::time::sleep(FOLLOW).await;
    }
}

/// Returns where the last lines begin.
fn tail(content: &[u8], lines: usize) -> usize {
    let text = content.strip_suffix(b"\n").unwrap_or(content);
    if lines == 0 {
        return content.len();
    }
    let breaks = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    breaks.map(|(index, _)| index + 1).nth(lines - 1).unwrap_or(0)
}

fn respond(kind: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(content.into()).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

fn not_found(message: &str) -> Response<Body> {
    let mut response = respond("text/plain", message.to_owned());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_has_whole_lines() {
        let tail = |lines| &b"a\nb\nc\n"[tail(b"a\nb\nc\n", lines)..];
        assert_eq!([tail(0), tail(1), tail(2), tail(9)], [&b""[..], b"c\n", b"b\nc\n", b"a\nb\nc\n"]);
    }
}
