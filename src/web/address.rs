//! Path segments from names, and safe redirect targets on this site. Pure.

use url::{Position, Url};

/// Prefix of the names `.` and `..` in a path: clients resolve these even when they are escaped.
/// Such names can no longer be created, but existing ones must be reachable to be removed.
const BEFORE_DOTS: char = '~';

/// Escapes a name as one path segment.
pub fn segment(name: &str) -> String {
    if matches!(name, "." | "..") {
        return format!("{BEFORE_DOTS}{name}");
    }
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// Restores the names `.` and `..` in a request's path, in the form that routes expect; none if it has no such name.
pub fn with_dots(path: &str) -> Option<String> {
    let dots = |segment: &str| match segment.strip_prefix(BEFORE_DOTS) {
        Some(".") => Some("%2E"),
        Some("..") => Some("%2E%2E"),
        _ => None,
    };
    let has_dots = path.split('/').any(|segment| dots(segment).is_some());
    has_dots.then(|| path.split('/').map(|segment| dots(segment).unwrap_or(segment)).collect::<Vec<_>>().join("/"))
}

/// Returns the path of an address on this site, or `/` if it leads to another site.
///
/// Resolves the address as a browser does, then checks it: without its dot, `/.//evil.example` names a host.
pub fn own_path(site: &Url, address: &str) -> String {
    let home = || "/".to_owned();
    let Ok(resolved) = site.join(address) else { return home() };
    let path = &resolved[Position::BeforePath..];
    // Resolve the result again: a path that begins with two slashes names a host.
    let is_own = resolved.origin() == site.origin() && site.join(path).is_ok_and(|second| second == resolved);
    if is_own && resolved.username().is_empty() && resolved.password().is_none() { path.to_owned() } else { home() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(segment("go-nethttp"), "go-nethttp");
        assert_eq!(segment("2 vCPU / 4 GiB"), "2%20vCPU%20%2F%204%20GiB");
        assert_eq!(segment("a?b#c\"<é>'"), "a%3Fb%23c%22%3C%C3%A9%3E%27");
    }

    #[test]
    fn a_name_of_dots_stays_one_segment() {
        for name in [".", ".."] {
            let url = site().join(&format!("/tokens/{}/revoke", segment(name))).expect("an address");
            let path = with_dots(url.path()).expect("a name of dots");
            assert_eq!(path, format!("/tokens/{}/revoke", name.replace('.', "%2E")));
        }
        assert_eq!(with_dots("/tokens/~x/~/..."), None);
    }

    fn site() -> Url {
        "https://bench.example.com:8443/".parse().expect("an address")
    }

    #[test]
    fn own_paths_are_kept_and_other_addresses_become_the_root() {
        for (address, path) in [
            ("/runs?x=1#top", "/runs?x=1#top"),
            ("runs", "/runs"),
            ("/a/../runs", "/runs"),
            ("https://bench.example.com:8443/runs", "/runs"),
            ("", "/"),
            ("https://evil.example", "/"),
            ("https://bench.example.com/", "/"),
            ("//evil.example", "/"),
            ("/.//evil.example", "/"),
            ("/..//evil.example", "/"),
            ("/%2e//evil.example", "/"),
            ("/a/..//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("/.\\/evil.example", "/"),
            ("/\t/evil.example", "/"),
            ("\n//evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("data:text/html,x", "/"),
            ("https://ada@bench.example.com:8443/runs", "/"),
        ] {
            assert_eq!(own_path(&site(), address), path, "{address:?}");
        }
    }

    proptest! {
        #[test]
        fn no_address_leads_to_another_site(
            address in prop_oneof![any::<String>(), "[/\\\\.%2e\t\n:@?#a]{0,12}(evil\\.example)?[/.]{0,3}"],
        ) {
            let path = own_path(&site(), &address);
            prop_assert!(path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/\\"), "{path:?}");
            // From any page of the site.
            for page in ["", "runs/new", "login?next=%2F"] {
                let landed = site().join(page).and_then(|page| page.join(&path));
                prop_assert_eq!(landed.expect("an address").origin(), site().origin());
            }
            prop_assert_eq!(own_path(&site(), &path), path);
        }
    }
}
