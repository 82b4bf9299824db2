//! Which connected agents offer the target of the form. Pure.

use url::form_urlencoded;

use crate::{
    fleet::{model::Availability, presence::Connected},
    web::address,
};

/// Which connected agents offer a target.
#[derive(Debug)]
pub(super) struct Pickup {
    pub(super) name: String,
    pub(super) version: String,
    /// Whether the manifest is valid, so that an agent may offer it.
    pub(super) is_expected: bool,
    pub(super) agents: Vec<Offer>,
}

/// What one agent offers.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) agent: String,
    pub(super) state: OfferState,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfferState {
    /// This version.
    Offered,
    /// Another version.
    Other(String),
    /// Not the target; it reads its manifests after its run.
    Busy,
    /// Not the target.
    Missing,
}

impl Pickup {
    pub(super) fn new(name: &str, version: &str, is_expected: bool, connected: Vec<(String, Connected)>) -> Self {
        let state = |agent: &Connected| match agent.hello.targets.iter().find(|offer| offer.name == name) {
            Some(offer) if offer.version == version => OfferState::Offered,
            Some(offer) => OfferState::Other(offer.version.clone()),
            None if agent.busy.is_some() => OfferState::Busy,
            None => OfferState::Missing,
        };
        let is_shown = |(_, agent): &(String, Connected)| agent.availability != Availability::Disabled;
        let mut agents: Vec<Offer> = connected
            .into_iter()
            .filter(is_shown)
            .map(|(name, agent)| Offer { state: state(&agent), agent: name })
            .collect();
        // Agents that offer it come first.
        agents.sort_by_key(|offer| offer.state != OfferState::Offered);
        Self { name: name.to_owned(), version: version.to_owned(), is_expected, agents }
    }

    pub(super) fn is_offered(&self) -> bool {
        self.agents.iter().any(|offer| offer.state == OfferState::Offered)
    }

    pub(super) fn address(&self) -> String {
        address::segment(&self.name)
    }

    pub(super) fn live_address(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("name", &self.name).append_pair("version", &self.version);
        // The address is in an expression, between single quotes, which the serializer escapes.
        format!("/targets/new/live?{}", query.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_expression_that_follows_it() {
        let pickup = Pickup::new("a'+alert(1)+'&\"", "\\", true, Vec::new());
        let address = pickup.live_address();
        assert!(!address.contains(['\'', '"', '\\', '`', '<', '\n']), "{address}");
    }
}
