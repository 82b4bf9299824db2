//! QEMU's control protocol, QMP: one JSON object per line, see
//! <https://www.qemu.org/docs/master/interop/qmp-spec.html>.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// Maximum time for a reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to a running QEMU.
#[derive(Debug)]
pub struct Qmp {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    /// Number of the last command: the reply to one that was given up comes later.
    number: u64,
    /// Why QEMU ends, once it has said so.
    shutdown: Option<String>,
}

impl Qmp {
    /// Greets a QEMU that has connected. The error is a sentence.
    pub async fn greet(stream: UnixStream) -> Result<Self, String> {
        let (reader, writer) = stream.into_split();
        let lines = BufReader::new(reader).lines();
        let mut qmp = Self { lines, writer, number: 0, shutdown: None };
        qmp.execute("qmp_capabilities", json!({})).await?;
        Ok(qmp)
    }

    /// Executes a command and returns its result. The error is a sentence. If this is cancelled, the connection stays
    /// usable.
    pub async fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, String> {
        self.number += 1;
        let id = self.number;
        let line = format!("{}\n", json!({"execute": command, "arguments": arguments, "id": id}));
        let exchange = async {
            self.writer.write_all(line.as_bytes()).await.map_err(|error| error.to_string())?;
            loop {
                let Some(mut message) = self.next().await else { return Err("the connection was closed".to_owned()) };
                if message["id"] != id {
                    continue;
                }
                return match message["error"]["desc"].as_str() {
                    Some(error) => Err(error.to_owned()),
                    None => Ok(message["return"].take()),
                };
            }
        };
        let result = timeout(PATIENCE, exchange).await;
        let result = result.unwrap_or_else(|_| Err(format!("no reply within {} s", PATIENCE.as_secs())));
        result.map_err(|error| format!("QEMU: {command}: {error}"))
    }

    /// Returns why QEMU ended, if it has said so: reads until the connection ends.
    pub async fn shutdown_reason(&mut self) -> Option<&str> {
        let _ = timeout(PATIENCE, async { while self.next().await.is_some() {} }).await;
        self.shutdown.as_deref()
    }

    /// Returns the next message; `None` at the end. Remembers the event of the end.
    async fn next(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok()??;
        let message: Value = serde_json::from_str(&line).ok()?;
        if message["event"] == "SHUTDOWN" {
            self.shutdown = message["data"]["reason"].as_str().map(str::to_owned);
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A QEMU that sends these lines for each line that it gets.
    fn qemu(replies: &'static [&'static [&'static str]]) -> UnixStream {
        let (own, other) = UnixStream::pair().expect("a pair");
        tokio::spawn(async move {
            let (reader, mut writer) = other.into_split();
            let mut lines = BufReader::new(reader).lines();
            writer.write_all(b"{\"QMP\": {\"capabilities\": [\"oob\"]}}\n").await.expect("sent");
            for reply in replies {
                lines.next_line().await.expect("a line");
                for line in *reply {
                    writer.write_all(format!("{line}\n").as_bytes()).await.expect("sent");
                }
            }
        });
        own
    }

    #[tokio::test]
    async fn events_and_late_replies_are_skipped() {
        const OK: &[&str] = &[r#"{"return": {}, "id": 1}"#];
        const MIXED: &[&str] = &[
            r#"{"event": "NIC_RX_FILTER_CHANGED", "data": {}}"#,
            r#"{"return": "late", "id": 1}"#,
            r#"{"return": {"actual": 7}, "id": 2}"#,
        ];
        const ERROR: &[&str] = &[r#"{"error": {"class": "GenericError", "desc": "no such device"}, "id": 3}"#];
        const END: &[&str] = &[r#"{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}"#];
        let mut qmp = Qmp::greet(qemu(&[OK, MIXED, ERROR, END])).await.expect("a QEMU");
        assert_eq!(qmp.execute("query-balloon", json!({})).await, Ok(json!({"actual": 7})));
        let error = qmp.execute("qom-get", json!({"path": "x"})).await;
        assert_eq!(error, Err("QEMU: qom-get: no such device".to_owned()));
        assert_eq!(qmp.execute("quit", json!({})).await, Err("QEMU: quit: the connection was closed".to_owned()));
        assert_eq!(qmp.shutdown_reason().await, Some("guest-shutdown"));
    }
}
