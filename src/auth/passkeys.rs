//! The passkey ceremonies: discoverable credentials with user verification, so that a person types no name to log in.

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

/// How long a person may take over a ceremony.
const LIFE: Duration = Duration::from_mins(5);
/// Ceremonies under way at once; starting one needs no login, so they must be bounded. It is more than all addresses from
/// which nobody is known to log in may start within the life of one, so that they can't end each other's.
const MOST: usize = 4_000;

/// One server's relying party and the ceremonies under way. Their state stays here and is used once.
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

/// A registration under way.
#[derive(Debug)]
pub struct Registration {
    /// The person's id, of one who is there or is to be.
    pub user_id: Uuid,
    /// The person's name.
    pub name: String,
    /// What lets the person do it.
    pub by: By,
    state: PasskeyRegistration,
}

/// What lets somebody register a passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The invitation with this hash.
    Invite(Vec<u8>),
    /// Being logged in.
    Session,
}

impl Passkeys {
    /// For a site under this address. A host name is needed: passkeys know no IP addresses.
    pub fn new(public_url: &Url) -> Result<Self, WebauthnError> {
        let host = public_url.domain().ok_or(WebauthnError::Configuration)?;
        let webauthn = WebauthnBuilder::new(host, public_url)?.rp_name("brewbench").build()?;
        Ok(Self { webauthn: Arc::new(webauthn), open: Arc::default() })
    }

    /// Starts to register a passkey of a person, on a device that holds none of these already.
    pub fn start_registration(
        &self,
        by: By,
        user_id: Uuid,
        name: &str,
        there: Vec<Vec<u8>>,
    ) -> Result<(Uuid, CreationChallengeResponse)> {
        let (mut options, state) =
            self.webauthn.start_passkey_registration(user_id, name, name, Some(there)).map_err(Error::internal)?;
        // webauthn-rs discourages resident keys; without one, login could not find the person.
        options.public_key.authenticator_selection = Some(AuthenticatorSelectionCriteria {
            resident_key: Some(ResidentKeyRequirement::Required),
            require_resident_key: true,
            user_verification: UserVerificationPolicy::Required,
            authenticator_attachment: None,
        });
        let registration = Registration { user_id, name: name.to_owned(), by, state };
        Ok((self.keep(Ceremony::Register(Box::new(registration))), options))
    }

    /// Ends a registration; gives the passkey to be stored.
    pub fn finish_registration(
        &self,
        ceremony: Uuid,
        credential: &RegisterPublicKeyCredential,
    ) -> Result<(Registration, Passkey)> {
        let Some(Ceremony::Register(registration)) = self.take(ceremony) else { return Err(gone()) };
        let passkey = self
            .webauthn
            .finish_passkey_registration(credential, &registration.state)
            .map_err(|fault| refused(&fault))?;
        Ok((*registration, passkey))
    }

    /// Starts a login of whoever holds a passkey for this site.
    pub fn start_login(&self) -> Result<(Uuid, RequestChallengeResponse)> {
        let (mut options, state) = self.webauthn.start_discoverable_authentication().map_err(Error::internal)?;
        // Conditional mediation waits for an autofill; ours begins with a button.
        options.mediation = None;
        Ok((self.keep(Ceremony::Login(Box::new(state))), options))
    }

    /// Which credential a login claims to be by; nothing is proven yet.
    pub fn claimed(&self, credential: &PublicKeyCredential) -> Result<Vec<u8>> {
        let (_, id) =
            self.webauthn.identify_discoverable_authentication(credential).map_err(|fault| refused(&fault))?;
        Ok(id.to_vec())
    }

    /// Ends a login against the stored passkey.
    pub fn finish_login(
        &self,
        ceremony: Uuid,
        credential: &PublicKeyCredential,
        passkey: &Passkey,
    ) -> Result<AuthenticationResult> {
        let Some(Ceremony::Login(state)) = self.take(ceremony) else { return Err(gone()) };
        self.webauthn
            .finish_discoverable_authentication_v2(credential, *state, passkey)
            .map_err(|fault| refused(&fault))
    }

    /// Whether a ceremony is under way.
    pub fn is_open(&self, id: Uuid) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(&id).is_some_and(|(since, _)| since.elapsed() < LIFE)
    }

    /// Ends a ceremony that came to nothing, wherever it stopped: it is for one try.
    pub fn end(&self, id: Uuid) {
        self.take(id);
    }

    fn keep(&self, ceremony: Ceremony) -> Uuid {
        let id = Uuid::new_v4();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, (since, _)| since.elapsed() < LIFE);
        if open.len() >= MOST
            && let Some(oldest) = open.iter().min_by_key(|(_, (since, _))| *since).map(|(id, _)| *id)
        {
            open.remove(&oldest);
        }
        open.insert(id, (Instant::now(), ceremony));
        id
    }

    fn take(&self, id: Uuid) -> Option<Ceremony> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&id).filter(|(since, _)| since.elapsed() < LIFE).map(|(_, ceremony)| ceremony)
    }
}

/// A ceremony that is not under way (any more).
pub fn gone() -> Error {
    Error::Conflict("this took too long or was done already; start again".to_owned())
}

fn refused(fault: &WebauthnError) -> Error {
    tracing::info!(%fault, "passkey refused");
    Error::Forbidden("the passkey was not accepted; try again, or with another".to_owned())
}
