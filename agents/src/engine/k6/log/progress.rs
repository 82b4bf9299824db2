//! What k6 prints beside its log until the end of a test: a banner, the description of the load, and its progress each
//! second. Pure.

/// Starts of the lines that describe the load.
const DESCRIPTION: [&str; 6] = ["execution: ", "script: ", "output: ", "web dashboard:", "scenarios: (", "* "];

/// Whether a line printed before the test is k6's banner or its description of the load.
pub fn is_introduction(line: &str) -> bool {
    let line = line.trim_start();
    DESCRIPTION.iter().any(|start| line.starts_with(start)) || is_banner(line)
}

fn is_banner(line: &str) -> bool {
    let drawn = line.replacen("Grafana", "", 1);
    drawn.contains(['/', '\\', '‾']) && !drawn.contains(char::is_alphanumeric)
}

/// Returns the number of interrupted iterations in a line of progress:
/// `running (33.9s), 0/5 VUs, 15 complete and 5 interrupted iterations`.
pub fn interrupted(line: &str) -> Option<u64> {
    let rest = ["running", "paused"].iter().find_map(|status| line.strip_prefix(status))?;
    let (before, count) = rest.strip_suffix(" interrupted iterations")?.rsplit_once(" complete and ")?;
    before.contains(" VUs, ").then(|| count.parse().ok())?
}

/// Whether a line is the bar of a scenario, or of the initialization: `default ✓ [ 100% ] 1 VUs  3s`.
pub fn is_bar(line: &str) -> bool {
    let Some((name, rest)) = line.split_once('[') else { return false };
    let is_named = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-… ✓✗•↓".contains(c)) && name.ends_with(' ');
    let percent = rest.trim_start().split_once("% ]").map(|(percent, _)| percent);
    is_named && percent.is_some_and(|percent| !percent.is_empty() && percent.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banner_and_description_are_recognized() {
        for line in [
            r"         /\      Grafana   /‾‾/  ",
            r"    /\  /  \     |\  __   /  /   ",
            r" / __________ \  |_|\_\  \_____/ ",
            "     execution: local",
            "     scenarios: (100.00%) 1 scenario, 2 max VUs, 5s max duration (incl. graceful stop):",
            "              * s: 2 looping VUs for 4s (gracefulStop: 1s)",
        ] {
            assert!(is_introduction(line), "{line}");
        }
        for line in ["panic: runtime error", "goroutine 1 [running]:", "\t/src/x.go:5", "", "read /etc/hosts"] {
            assert!(!is_introduction(line), "{line}");
        }
    }

    #[test]
    fn progress_is_recognized() {
        let last = "running (0m33.9s), 0/5 VUs, 15 complete and 5 interrupted iterations";
        assert_eq!(interrupted(last), Some(5));
        assert_eq!(interrupted("running late, 5 interrupted iterations"), None);
        for line in ["r    ✓ [ 100% ] 0/1 VUs  2s  2.00 iters/s", "Run    [ 100% ] setup()", "s      [   0% ]"] {
            assert!(is_bar(line), "{line}");
        }
        for line in ["goroutine 1 [running]:", "x: [ 5% ]", "[ 5 ]", ""] {
            assert!(!is_bar(line), "{line}");
        }
    }
}
