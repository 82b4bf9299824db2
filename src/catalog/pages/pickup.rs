//! Which connected agents offer the target of the form. Pure.

use brewbench_wire::manifest::ManifestFile;
use serde::Deserialize;
use url::form_urlencoded;

use crate::{
    fleet::{model::Availability, presence::Connected},
    web::address,
};

/// The target that an agent should offer.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Expected {
    pub(super) name: String,
    pub(super) version: String,
    /// A path that it answers.
    #[serde(default)]
    pub(super) route: String,
}

impl Expected {
    /// The target of a manifest.
    pub(super) fn of(file: &ManifestFile) -> Self {
        let route = file.verify.as_ref().map_or(&file.ready.path, |verify| &verify.path).clone();
        Self { name: file.name.clone(), version: file.version.clone(), route }
    }
}

/// Which connected agents offer a target.
#[derive(Debug)]
pub(super) struct Pickup {
    pub(super) name: String,
    pub(super) version: String,
    /// A path that it answers, for its first comparison.
    route: String,
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
    pub(super) fn new(
        Expected { name, version, route }: Expected,
        is_expected: bool,
        connected: Vec<(String, Connected)>,
    ) -> Self {
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
        Self { name, version, route, is_expected, agents }
    }

    pub(super) fn is_offered(&self) -> bool {
        self.agents.iter().any(|offer| offer.state == OfferState::Offered)
    }

    pub(super) fn address(&self) -> String {
        address::segment(&self.name)
    }

    /// The form of a new run that requests a path which the target answers.
    pub(super) fn new_run(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("target", &self.name).append_pair("scenario", "get").append_pair("set.ROUTE", &self.route);
        format!("/experiments/new?{}", query.finish())
    }

    pub(super) fn live_address(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("name", &self.name).append_pair("version", &self.version).append_pair("route", &self.route);
        // The address is in an expression, between single quotes, which the serializer escapes.
        format!("/targets/new/live?{}", query.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_expression_that_follows_it() {
        let odd = |text: &str| text.to_owned();
        let expected = Expected { name: odd("a'+alert(1)+'&\""), version: odd("\\"), route: odd("/'") };
        let pickup = Pickup::new(expected, true, Vec::new());
        let address = pickup.live_address();
        assert!(!address.contains(['\'', '"', '\\', '`', '<', '\n']), "{address}");
    }
}
