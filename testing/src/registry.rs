//! A registry of one image on loopback, over plain HTTP, that behaves or does not.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::podman::{Image, hex};

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// How a registry behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It serves its image.
    Good,
    /// It serves its image at 1 MiB/s, and the end only once it is released.
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
    is_released: Arc<AtomicBool>,
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
        let content = Arc::new(Content::of(image));
        let is_released = Arc::new(AtomicBool::new(manner != Manner::Slow));
        let released = Arc::clone(&is_released);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (content, released) = (Arc::clone(&content), Arc::clone(&released));
                thread::spawn(move || serve(&stream, manner, &content, &released));
            }
        });
        Self { at, is_released }
    }

    /// Lets a slow registry serve the rest of its image at once.
    pub fn release(&self) {
        self.is_released.store(true, Ordering::Relaxed);
    }

    /// Returns the name of its image.
    #[must_use]
    pub fn image(&self) -> String {
        format!("{}/shop:1", self.at)
    }
}

fn serve(stream: &TcpStream, manner: Manner, content: &Content, is_released: &AtomicBool) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(request) = lines.next().transpose()? {
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let path = request.split(' ').nth(1).unwrap_or_default();
        match manner {
            Manner::Silent => loop {
                thread::park();
            },
            Manner::Refusing => answer(stream, "403 Forbidden", "application/json", denial().as_bytes(), &request)?,
            Manner::Good | Manner::Slow => good(stream, path, content, is_released, &request)?,
        }
    }
    Ok(())
}

fn denial() -> String {
    json!({"errors": [{"code": "DENIED", "message": "denied"}]}).to_string()
}

/// What a registry serves of an image. Digests take seconds without optimization: they are computed once.
struct Content {
    manifest: String,
    config: (String, Vec<u8>),
    layer: (String, Image),
}

impl Content {
    fn of(image: Image) -> Self {
        let config = image.config();
        let (of_config, of_layer) = (hex(&config), hex(image.layer()));
        let part = |kind: &str, size: usize, digest: &str| {
            let kind = format!("application/vnd.docker.{kind}");
            json!({"mediaType": kind, "size": size, "digest": format!("sha256:{digest}")})
        };
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": part("container.image.v1+json", config.len(), &of_config),
            "layers": [part("image.rootfs.diff.tar", image.layer().len(), &of_layer)],
        });
        Self { manifest: manifest.to_string(), config: (of_config, config), layer: (of_layer, image) }
    }
}

fn good(stream: &TcpStream, path: &str, content: &Content, is_released: &AtomicBool, request: &str) -> io::Result<()> {
    const BYTES: &str = "application/octet-stream";
    let Content { manifest, config, layer } = content;
    match path {
        "/v2/" => answer(stream, "200 OK", "application/json", b"{}", request),
        _ if path.contains("/manifests/") => answer(stream, "200 OK", MANIFEST, manifest.as_bytes(), request),
        _ if path.ends_with(&config.0) => answer(stream, "200 OK", BYTES, &config.1, request),
        _ if path.ends_with(&layer.0) => {
            head(stream, "200 OK", BYTES, layer.1.layer().len())?;
            send(stream, layer.1.layer(), is_released)
        }
        _ => answer(stream, "404 Not Found", "application/json", b"{}", request),
    }
}

fn send(mut stream: &TcpStream, mut content: &[u8], is_released: &AtomicBool) -> io::Result<()> {
    const PART: usize = 64 << 10;
    while !is_released.load(Ordering::Relaxed) {
        if let Some((part, rest)) = content.split_at_checked(PART) {
            stream.write_all(part)?;
            content = rest;
        }
        thread::sleep(Duration::from_millis(62));
    }
    stream.write_all(content)
}

fn answer(mut stream: &TcpStream, status: &str, kind: &str, body: &[u8], request: &str) -> io::Result<()> {
    head(stream, status, kind, body.len())?;
    if request.starts_with("HEAD") { Ok(()) } else { stream.write_all(body) }
}

fn head(mut stream: &TcpStream, status: &str, kind: &str, length: usize) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n")?;
    write!(stream, "docker-distribution-api-version: registry/2.0\r\n\r\n")
}
