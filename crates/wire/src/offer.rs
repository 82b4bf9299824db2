//! Limits of what an agent may send in its hello. The agent checks them so that its owner sees errors, the server
//! because an agent's key may be stolen.

use super::engine::EngineOffer;
use super::messages::{Hello, TargetOffer};
use super::name::Name;

/// Maximum targets of one agent.
pub const MAX_TARGETS: usize = 200;
/// Maximum load generators of one agent.
pub const MAX_ENGINES: usize = 20;
/// Maximum patterns of the revisions of a target.
const MAX_REVISIONS: usize = 100;
/// Maximum characters of a version.
pub const MAX_VERSION: usize = 100;
/// Maximum characters of a description.
pub const MAX_DESCRIPTION: usize = 1_000;
/// Maximum bytes of a text about the machine.
const MAX_TEXT: usize = 500;

/// Explains why an offered target is invalid; the sentence starts with the field.
pub fn target_fault(offer: &TargetOffer) -> Option<String> {
    let TargetOffer {
        name,
        version,
        description,
        identity,
        anywhere: _,
        profile: _,
        compiles_at_run_time: _,
        revisions,
    } = offer;
    if revisions.len() > MAX_REVISIONS || revisions.iter().any(|pattern| pattern.len() > MAX_VERSION) {
        return Some(format!("source.refs: at most {MAX_REVISIONS} patterns of {MAX_VERSION} characters"));
    }
    if let Some(fault) = name_fault(name).or_else(|| version_fault(version)).or_else(|| description_fault(description))
    {
        return Some(fault);
    }
    identity.fault()
}

/// Explains why a target can't have this name.
pub fn name_fault(name: &str) -> Option<String> {
    match name.parse::<Name>() {
        Err(fault) => Some(format!("name: {fault}")),
        Ok(checked) if checked.as_str() != name => Some("name: is not in Unicode form NFC".to_owned()),
        Ok(_) => None,
    }
}

/// Explains why a target can't have this version.
pub fn version_fault(version: &str) -> Option<String> {
    let is_version = (1..=MAX_VERSION).contains(&version.chars().count()) && !version.chars().any(char::is_control);
    (!is_version).then(|| format!("version: 1 to {MAX_VERSION} characters on one line"))
}

/// Explains why a target can't have this description.
pub fn description_fault(description: &str) -> Option<String> {
    (description.chars().count() > MAX_DESCRIPTION)
        .then(|| format!("description: at most {MAX_DESCRIPTION} characters"))
}

/// Explains why a hello is invalid, as a sentence for the agent's owner.
pub fn hello_fault(hello: &Hello) -> Option<String> {
    let count = hello.targets.len();
    if count > MAX_TARGETS {
        return Some(format!("this agent offers {count} targets; the maximum is {MAX_TARGETS}"));
    }
    for offer in &hello.targets {
        if let Some(fault) = target_fault(offer) {
            let name: String = offer.name.escape_debug().take(80).collect();
            return Some(format!("this agent offers an invalid target \"{name}\": {fault}"));
        }
    }
    let machine = &hello.machine;
    if hello.engines.len() > MAX_ENGINES {
        return Some(format!("this agent has {} load generators; the maximum is {MAX_ENGINES}", hello.engines.len()));
    }
    let engines = hello.engines.iter().flat_map(|engine| {
        let EngineOffer { name, version, path, supported, fault, capabilities: _ } = engine;
        [Some(name), Some(version), Some(path), Some(supported), fault.as_ref()].into_iter().flatten()
    });
    let about = [&hello.version, &machine.hostname, &machine.kernel, &machine.cpu_model];
    let is_long = about.into_iter().chain(engines).any(|text| text.len() > MAX_TEXT);
    is_long.then(|| format!("this agent describes its machine in more than {MAX_TEXT} bytes"))
}

#[cfg(test)]
mod tests {
    use super::super::target::Identity;
    use super::*;
    use crate::samples::hello;

    fn program(sha256: String) -> Identity {
        Identity::Process { sha256, code: None }
    }

    fn offering(change: impl Fn(&mut TargetOffer)) -> Option<String> {
        let mut hello = hello();
        hello.targets[0].identity = program("ab".repeat(32));
        change(&mut hello.targets[0]);
        hello_fault(&hello)
    }

    type Change = fn(&mut TargetOffer);

    #[test]
    fn a_hello_fault_names_the_invalid_part() {
        assert_eq!(offering(|_| ()), None);
        let cases: [(Change, &str); 6] = [
            (|offer| offer.name = "..".to_owned(), "name: must not consist of dots"),
            (|offer| offer.name = "a\u{202e}b".to_owned(), "name: U+202E is not allowed"),
            (|offer| offer.name = " a".to_owned(), "name: is not in"),
            (|offer| offer.version = "1".repeat(101), "version: 1 to 100"),
            (|offer| offer.description = "x".repeat(1_001), "description: at most"),
            (|offer| offer.identity = program("00".to_owned()), "sha256: 64"),
        ];
        for (change, words) in cases {
            let fault = offering(change).expect(words);
            assert!(fault.contains(words), "{fault}");
        }
        let mut many = hello();
        many.targets = vec![many.targets[0].clone(); MAX_TARGETS + 1];
        assert!(hello_fault(&many).is_some_and(|fault| fault.contains("201 targets")));
        let mut long = hello();
        long.targets.clear();
        long.machine.hostname = "x".repeat(501);
        assert!(hello_fault(&long).is_some_and(|fault| fault.contains("describes its machine")));
    }
}
