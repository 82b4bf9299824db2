//! Uploads that would fill the memory, and a disk that is full.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use brewbench_testing::SmallDisk;
use reqwest::header::CONTENT_LENGTH;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::{App, summaries::good};

const MIB: usize = 1024 * 1024;

/// Announces a large body and sends none of it.
async fn announce(app: &App, secret: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", app.url.port().expect("a port"))).await.expect("a connection");
    let head = format!(
        "POST /api/v1/runs/import?target=t HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n{CONTENT_LENGTH}: {MIB}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream
}

/// A summary of the largest size, each time with other blanks: the server refuses a file that it has.
fn large() -> String {
    static LINES: AtomicUsize = AtomicUsize::new(0);
    let (summary, lines) = (good(), LINES.fetch_add(1, Ordering::Relaxed));
    let blanks = " ".repeat(MIB - summary.len() - lines);
    summary + &"\n".repeat(lines) + &blanks
}

#[tokio::test]
async fn large_uploads_take_turns_and_small_ones_do_not_wait() {
    let app = App::with(|config| config.max_summary_bytes = MIB).await;
    let user = app.user().await;
    // Twice the largest body, the 3 MiB of a result.
    let mut announced = Vec::new();
    for _ in 0..6 {
        announced.push(announce(&app, user.secret()).await);
    }
    let refused = app.until("no room", async || Some(user.import(large()).await).filter(|answer| answer.status == 503));
    let refused = refused.await;
    assert_eq!(refused.header("retry-after"), "2");
    assert!(refused.refused(503).contains("other uploads; try again"));
    user.import(good()).await.ok();
    drop(announced);
    app.until("room", async || user.import(large()).await.status.is_success().then_some(())).await;
}

#[tokio::test]
async fn refused_uploads_reserve_no_memory() {
    let app = App::with(|config| config.max_summary_bytes = MIB).await;
    let mut announced = Vec::new();
    for _ in 0..20 {
        announced.push(announce(&app, "bbt_wrong").await);
    }
    for stream in &mut announced {
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.expect("an answer");
        assert_eq!(&status, b"HTTP/1.1 401");
    }
    app.user().await.import(large()).await.ok();
}

#[tokio::test]
async fn a_server_is_not_ready_while_its_disk_is_full() {
    let Some(disk) = SmallDisk::mount("48m") else { return };
    let app = App::on(tempfile::tempdir_in(disk.path()).expect("a folder"), |_| ()).await;
    let nobody = app.anonymous();
    assert_eq!(nobody.get("/readyz").await.ok().text(), "ready");
    let filler = disk.fill();
    assert_eq!(nobody.get("/readyz").await.refused(503), "the disk of the data folder is full");
    assert_eq!(nobody.get("/healthz").await.ok().text(), "ok", "the server is alive");
    fs::remove_file(filler).expect("room");
    assert_eq!(nobody.get("/readyz").await.ok().text(), "ready");
}
