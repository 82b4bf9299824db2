//! Passkey ceremonies. Credentials are discoverable and verify the user, so a login needs no user name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use url::Url;
use uuid::Uuid;
use webauthn_rs::prelude::{
    AuthenticationResult, CreationChallengeResponse, DiscoverableAuthentication, Passkey, PasskeyRegistration,
    PublicKeyCredential, RegisterPublicKeyCredential, RequestChallengeResponse, Webauthn, WebauthnBuilder,
    WebauthnError,
};
use webauthn_rs_proto::{AuthenticatorSelectionCriteria, ResidentKeyRequirement, UserVerificationPolicy};

use crate::app::error::{Error, Result};

/// Lifetime of a ceremony.
const LIFETIME: Duration = Duration::from_mins(5);
/// The maximum number of open ceremonies, because starting one needs no login. It exceeds what the rate limit allows
/// all unknown addresses within a lifetime, so that they cannot evict each other's.
const MAX_OPEN: usize = 4_000;

/// The server's relying party and its open ceremonies, whose state is used once.
#[derive(Clone, Debug)]
pub struct Passkeys {
    webauthn: Arc<Webauthn>,
    open: Arc<Mutex<HashMap<Uuid, (Instant, Ceremony)>>>,
}

#[derive(Debug)]
enum Ceremony {
    Register(Box<Registration>),
    Login(Box<DiscoverableAuthentication>),
}

/// A started registration.
#[derive(Debug)]
pub struct Registration {
    /// Id of the existing or new user.
    pub user_id: Uuid,
    /// Name of the user.
    pub name: String,
    /// What permits the registration.
    pub by: By,
    state: PasskeyRegistration,
}

/// What permits the registration of a passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The invitation with this hash.
    Invite(Vec<u8>),
    /// A session.
    Session,
}

impl Passkeys {
    /// Creates the relying party of a site. Passkeys need a host name, not an IP address.
    pub fn new(public_url: &Url) -> Result<Self, WebauthnError> {
        let host = public_url.domain().ok_or(WebauthnError::Configuration)?;
        let webauthn = WebauthnBuilder::new(host, public_url)?.rp_name("brewbench").build()?;
        Ok(Self { webauthn: Arc::new(webauthn), open: Arc::default() })
    }

    /// Starts the registration of a passkey, excluding authenticators that hold an existing one.
    pub fn start_registration(
        &self,
        by: By,
        user_id: Uuid,
        name: &str,
        existing: Vec<Vec<u8>>,
    ) -> Result<(Uuid, CreationChallengeResponse)> {
        let (mut options, state) =
            self.webauthn.start_passkey_registration(user_id, name, name, Some(existing)).map_err(Error::internal)?;
        // webauthn-rs discourages resident keys, but without one the login could not identify the user.
        options.public_key.authenticator_selection = Some(AuthenticatorSelectionCriteria {
            resident_key: Some(ResidentKeyRequirement::Required),
            require_resident_key: true,
            user_verification: UserVerificationPolicy::Required,
            authenticator_attachment: None,
        });
        let registration = Registration { user_id, name: name.to_owned(), by, state };
        Ok((self.insert(Ceremony::Register(Box::new(registration))), options))
    }

    /// Finishes a registration and returns the passkey to store.
    pub fn finish_registration(
        &self,
        ceremony: Uuid,
        credential: &RegisterPublicKeyCredential,
    ) -> Result<(Registration, Passkey)> {
        let Some(Ceremony::Register(registration)) = self.remove(ceremony) else { return Err(gone()) };
        let passkey = self
            .webauthn
            .finish_passkey_registration(credential, &registration.state)
            .map_err(|fault| refused(&fault))?;
        Ok((*registration, passkey))
    }

    /// Starts a login.
    pub fn start_login(&self) -> Result<(Uuid, RequestChallengeResponse)> {
        let (mut options, state) = self.webauthn.start_discoverable_authentication().map_err(Error::internal)?;
        // Conditional mediation waits for autofill, but this login starts with a button.
        options.mediation = None;
        Ok((self.insert(Ceremony::Login(Box::new(state))), options))
    }

    /// Returns the id of the claimed credential, which is not verified yet.
    pub fn claimed(&self, credential: &PublicKeyCredential) -> Result<Vec<u8>> {
        let (_, id) =
            self.webauthn.identify_discoverable_authentication(credential).map_err(|fault| refused(&fault))?;
        Ok(id.to_vec())
    }

    /// Finishes a login by verifying it with the stored passkey.
    pub fn finish_login(
        &self,
        ceremony: Uuid,
        credential: &PublicKeyCredential,
        passkey: &Passkey,
    ) -> Result<AuthenticationResult> {
        let Some(Ceremony::Login(state)) = self.remove(ceremony) else { return Err(gone()) };
        self.webauthn
            .finish_discoverable_authentication_v2(credential, *state, passkey)
            .map_err(|fault| refused(&fault))
    }

    /// Returns whether a ceremony is open.
    pub fn is_open(&self, id: Uuid) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&id).is_some_and(|(since, _)| since.elapsed() < LIFETIME)
    }

    /// Ends a failed ceremony, because it allows one attempt.
    pub fn end(&self, id: Uuid) {
        self.remove(id);
    }

    fn insert(&self, ceremony: Ceremony) -> Uuid {
        let id = Uuid::new_v4();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, (since, _)| since.elapsed() < LIFETIME);
        if open.len() >= MAX_OPEN
            && let Some(oldest) = open.iter().min_by_key(|(_, (since, _))| *since).map(|(id, _)| *id)
        {
            open.remove(&oldest);
        }
        open.insert(id, (Instant::now(), ceremony));
        id
    }

    fn remove(&self, id: Uuid) -> Option<Ceremony> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&id).filter(|(since, _)| since.elapsed() < LIFETIME).map(|(_, ceremony)| ceremony)
    }
}

/// The error of a ceremony that is not open.
pub fn gone() -> Error {
    Error::Conflict("this took too long or was already finished; start again".to_owned())
}

fn refused(fault: &WebauthnError) -> Error {
    tracing::debug!(%fault, "a ceremony failed");
    Error::Forbidden("the passkey was not accepted; try again or use another one".to_owned())
}
