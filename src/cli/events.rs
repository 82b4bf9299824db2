//! Server-sent events, as the server sends them.

use std::time::Duration;

use anyhow::Context;
use futures_util::{StreamExt, stream::BoxStream};
use tokio::time::timeout;

/// The server says something every 15 s at least: whoever is silent for longer is gone.
const SILENCE: Duration = Duration::from_secs(45);

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// What it is called; empty if it is not.
    pub name: String,
    /// By which the next connection says what has been heard.
    pub id: Option<String>,
    /// JSON.
    pub data: String,
}

/// The events of one answer.
pub struct Events {
    chunks: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: Vec<u8>,
    begun: Event,
}

impl Events {
    /// Reads the events of an answer.
    pub fn of(answer: reqwest::Response) -> Self {
        Self::from_chunks(answer.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec())).boxed())
    }

    fn from_chunks(chunks: BoxStream<'static, reqwest::Result<Vec<u8>>>) -> Self {
        Self { chunks, text: Vec::new(), begun: Event::default() }
    }

    /// The next one; none when the answer has ended. It may be dropped while it waits.
    pub async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end_matches(['\r', '\n']);
                if line.is_empty() && !self.begun.data.is_empty() {
                    return Ok(Some(std::mem::take(&mut self.begun)));
                }
                self.take(line);
            }
            let chunk = timeout(SILENCE, self.chunks.next()).await.context("the server has fallen silent")?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.text.extend(chunk?);
        }
    }

    fn take(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.begun.name),
            "id" => self.begun.id = Some(value.to_owned()),
            "data" => self.begun.data.push_str(value),
            // A comment, say, that keeps the connection alive.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn events_are_read_however_they_are_cut() {
        let text = ":\n\nevent: points\nid: 7\ndata: {\"a\":1}\n\n: alive\n\ndata:{}\r\n\r\nevent: cut off\n";
        for size in 1..text.len() {
            let chunks: Vec<_> = text.as_bytes().chunks(size).map(|chunk| Ok(chunk.to_vec())).collect();
            let mut events = Events::from_chunks(stream::iter(chunks).boxed());
            let points = Event { name: "points".to_owned(), id: Some("7".to_owned()), data: "{\"a\":1}".to_owned() };
            assert_eq!(events.next().await.expect("read"), Some(points));
            let second = events.next().await.expect("read").expect("another");
            assert_eq!((second.name.as_str(), second.id, second.data.as_str()), ("", None, "{}"));
            assert_eq!(events.next().await.expect("read"), None);
        }
    }
}
