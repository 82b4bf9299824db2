//! Names in addresses, and addresses on this site. Pure.

use url::{Position, Url};

/// A name as one segment of a path, whatever is in it.
pub fn segment(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
            // Dots as well: a segment of one or two of them would lead elsewhere.
            other => format!("%{other:02X}"),
        })
        .collect()
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
