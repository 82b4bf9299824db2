//! The body of a request. In JSON it is a text, or base64 if it is not UTF-8.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The body of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Encoded {
    Text(String),
    Base64(String),
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = str::from_utf8(&self.0).map(|text| Encoded::Text(text.to_owned()));
        text.unwrap_or_else(|_| Encoded::Base64(STANDARD.encode(&self.0))).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Encoded::deserialize(deserializer)? {
            Encoded::Text(text) => text.into_bytes(),
            Encoded::Base64(text) => STANDARD.decode(text).map_err(D::Error::custom)?,
        }))
    }
}
