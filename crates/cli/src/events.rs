//! Reads server-sent events.

use std::time::Duration;

use anyhow::Context;
use futures_util::{StreamExt, stream::BoxStream};
use tokio::time::timeout;

/// The server sends a comment at least every 15 s; after this long without data the connection counts as dead.
const SILENCE: Duration = Duration::from_secs(45);

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name, or an empty string.
    pub name: String,
    /// Its id, sent as `Last-Event-ID` when reconnecting.
    pub id: Option<String>,
    /// Its data, as JSON.
    pub data: String,
}

/// The events of one response.
pub struct Events {
    chunks: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: Vec<u8>,
    partial: Event,
}

impl Events {
    /// Reads the events of a response.
    pub fn from_response(response: reqwest::Response) -> Self {
        Self::from_chunks(response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec())).boxed())
    }

    fn from_chunks(chunks: BoxStream<'static, reqwest::Result<Vec<u8>>>) -> Self {
        Self { chunks, text: Vec::new(), partial: Event::default() }
    }

    /// Returns the next event, or `None` when the response has ended. Cancel safe.
    pub async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end_matches(['\r', '\n']);
                if line.is_empty() && !self.partial.data.is_empty() {
                    return Ok(Some(std::mem::take(&mut self.partial)));
                }
                self.parse_line(line);
            }
            let chunk = timeout(SILENCE, self.chunks.next()).await.context("no data from the server for 45 s")?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.text.extend(chunk?);
        }
    }

    fn parse_line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.partial.name),
            "id" => self.partial.id = Some(value.to_owned()),
            "data" => self.partial.data.push_str(value),
            // Such as a comment that keeps the connection alive.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn events_are_read_from_chunks_of_any_size() {
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
