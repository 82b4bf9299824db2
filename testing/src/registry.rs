//! A registry of one image on loopback, over plain HTTP, that behaves or does not.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::podman::{Image, hex};

/// How a registry behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It serves its image.
    Good,
    /// It serves its image at 16 MiB/s.
    Slow,
    /// It accepts connections, and never answers.
    Silent,
    /// It refuses everything, as without permission.
    Refusing,
}

/// A running registry; it ends with the process.
#[derive(Debug)]
pub struct Registry {
    at: SocketAddr,
}

impl Registry {
    /// Serves an image.
    ///
    /// # Panics
    /// If it can't listen.
    #[must_use]
    pub fn start(manner: Manner, image: Image) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let at = listener.local_addr().expect("bound");
        let image = Arc::new(image);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let image = Arc::clone(&image);
                thread::spawn(move || serve(&stream, manner, &image));
            }
        });
        Self { at }
    }

    /// Returns the name of its image.
    #[must_use]
    pub fn image(&self) -> String {
        format!("{}/shop:1", self.at)
    }
}

fn serve(stream: &TcpStream, manner: Manner, image: &Image) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(request) = lines.next().transpose()? {
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let path = request.split(' ').nth(1).unwrap_or_default();
        match manner {
            Manner::Silent => loop {
                thread::park();
            },
            Manner::Refusing => answer(stream, "403 Forbidden", "application/json", denial().as_bytes(), &request)?,
            Manner::Good | Manner::Slow => good(stream, path, image, manner == Manner::Slow, &request)?,
        }
    }
    Ok(())
}

fn denial() -> String {
    json!({"errors": [{"code": "DENIED", "message": "denied"}]}).to_string()
}

fn good(stream: &TcpStream, path: &str, image: &Image, is_slow: bool, request: &str) -> io::Result<()> {
    const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    let config = image.config();
    let part = |kind: &str, content: &[u8]| {
        let kind = format!("application/vnd.docker.{kind}");
        json!({"mediaType": kind, "size": content.len(), "digest": format!("sha256:{}", hex(content))})
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": part("container.image.v1+json", &config),
        "layers": [part("image.rootfs.diff.tar", image.layer())],
    });
    let manifest = manifest.to_string();
    match path {
        "/v2/" => answer(stream, "200 OK", "application/json", b"{}", request),
        _ if path.contains("/manifests/") => answer(stream, "200 OK", MANIFEST, manifest.as_bytes(), request),
        _ if path.ends_with(&hex(&config)) => answer(stream, "200 OK", "application/octet-stream", &config, request),
        _ if path.ends_with(&hex(image.layer())) => {
            let (first, rest) = image.layer().split_at(if is_slow { 0 } else { image.layer().len() });
            head(stream, "200 OK", "application/octet-stream", image.layer().len())?;
            (&*stream).write_all(first)?;
            rest.chunks(1 << 20).try_for_each(|chunk| {
                thread::sleep(Duration::from_millis(62));
                (&*stream).write_all(chunk)
            })
        }
        _ => answer(stream, "404 Not Found", "application/json", b"{}", request),
    }
}

fn answer(mut stream: &TcpStream, status: &str, kind: &str, body: &[u8], request: &str) -> io::Result<()> {
    head(stream, status, kind, body.len())?;
    if request.starts_with("HEAD") { Ok(()) } else { stream.write_all(body) }
}

fn head(mut stream: &TcpStream, status: &str, kind: &str, length: usize) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n")?;
    write!(stream, "docker-distribution-api-version: registry/2.0\r\n\r\n")
}
