//! How a receiver knows that an event comes from here: HMAC-SHA-256 after Standard Webhooks
//! (<https://github.com/standard-webhooks/standard-webhooks>), symmetric, `v1`.

use base64::{Engine, prelude::BASE64_STANDARD};
use rand::{TryRngCore, rngs::OsRng};
use ring::hmac;

const PREFIX: &str = "whsec_";

/// A new secret of 256 random bits: `whsec_` and base64.
///
/// # Panics
/// If the operating system has no randomness to give: nothing safe can be done without.
pub fn new_secret() -> String {
    let mut bytes = [0_u8; 32];
    OsRng.try_fill_bytes(&mut bytes).expect("the operating system gives random bytes");
    format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes))
}

/// What the header `webhook-signature` says of a body: `v1,` and base64. None if the secret is none of ours.
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
    fn a_signature_is_that_of_the_libraries_of_standard_webhooks() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let signed = signature(secret, id, 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn each_secret_is_new_and_signs() {
        let (one, other) = (new_secret(), new_secret());
        assert!(one != other && one.len() == PREFIX.len() + 44, "{one}");
        assert_ne!(signature(&one, "a", 1, "{}"), signature(&other, "a", 1, "{}"));
        assert_ne!(signature(&one, "a", 1, "{}"), signature(&one, "a", 2, "{}"));
        assert_eq!(signature("whsec_?", "a", 1, "{}"), None);
    }
}
