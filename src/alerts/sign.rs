//! Signs events so that receivers can verify their origin: HMAC-SHA-256 according to Standard Webhooks
//! (<https://github.com/standard-webhooks/standard-webhooks>), symmetric, `v1`.

use base64::{Engine, prelude::BASE64_STANDARD};
use rand::{TryRngCore, rngs::OsRng};
use ring::hmac;

const PREFIX: &str = "whsec_";

/// Returns a new secret of 256 random bits: `whsec_` and base64.
///
/// # Panics
/// If the operating system returns no random bytes.
pub fn new_secret() -> String {
    let mut bytes = [0_u8; 32];
    OsRng.try_fill_bytes(&mut bytes).expect("the operating system returns random bytes");
    format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes))
}

/// Returns the value of the header `webhook-signature`: `v1,` and base64. `None` if the secret has another format.
pub fn signature(secret: &str, id: &str, timestamp_s: i64, body: &str) -> Option<String> {
    let key = BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, format!("{id}.{timestamp_s}.{body}").as_bytes());
    Some(format!("v1,{}", BASE64_STANDARD.encode(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_standard_webhooks_libraries() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let signed = signature(secret, id, 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn secrets_are_unique_and_sign() {
        let (one, other) = (new_secret(), new_secret());
        assert!(one != other && one.len() == PREFIX.len() + 44, "{one}");
        assert_ne!(signature(&one, "a", 1, "{}"), signature(&other, "a", 1, "{}"));
        assert_ne!(signature(&one, "a", 1, "{}"), signature(&one, "a", 2, "{}"));
        assert_eq!(signature("whsec_?", "a", 1, "{}"), None);
    }
}
