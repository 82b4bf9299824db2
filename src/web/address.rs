//! Names in addresses, and addresses on this site. Pure.

use url::{Position, Url};

/// What stands in a path before a name of dots alone, which clients take for a way up even where it is escaped. There are no
/// new names like that; old ones must be reached to be removed.
const BEFORE_DOTS: char = '~';

/// A name as one segment of a path, whatever is in it.
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

/// A path of a request with names of dots alone as routes know them; none where it has no such name.
pub fn with_dots(path: &str) -> Option<String> {
    let dots = |segment: &str| match segment.strip_prefix(BEFORE_DOTS) {
        Some(".") => Some("%2E"),
        Some("..") => Some("%2E%2E"),
        _ => None,
    };
    let has_dots = path.split('/').any(|segment| dots(segment).is_some());
    has_dots.then(|| path.split('/').map(|segment| dots(segment).unwrap_or(segment)).collect::<Vec<_>>().join("/"))
}

/// Where on this site an address leads, or `/` if it leads elsewhere.
///
/// The address is resolved first, as a browser would, and the resolved path is checked and used: `/.//evil.example` is a
/// path until its dot is gone, and the name of a host from then on.
pub fn own_path(site: &Url, address: &str) -> String {
    let home = || "/".to_owned();
    let Ok(resolved) = site.join(address) else { return home() };
    let path = &resolved[Position::BeforePath..];
    // Once more: a path that begins with two slashes names a host.
    let is_own = resolved.origin() == site.origin() && site.join(path).is_ok_and(|again| again == resolved);
    if is_own && resolved.username().is_empty() && resolved.password().is_none() { path.to_owned() } else { home() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_in_a_name_leads_out_of_its_segment() {
        assert_eq!(segment("go-nethttp"), "go-nethttp");
        assert_eq!(segment("2 vCPU / 4 GiB"), "2%20vCPU%20%2F%204%20GiB");
        assert_eq!(segment("a?b#c\"<é>'"), "a%3Fb%23c%22%3C%C3%A9%3E%27");
    }

    #[test]
    fn a_name_of_dots_keeps_its_segment() {
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
    fn own_paths_stay_and_everything_else_leads_home() {
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
        fn nobody_lands_elsewhere_whatever_the_address_is(
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
