//! Finds hyperthreads of the same physical core from the kernel's topology files. Pure.

/// Physical cores, each with its CPUs in ascending order.
pub type PhysicalCores = Vec<Vec<usize>>;

/// Groups CPUs by physical core, in the order of assignment: by lowest number, but the core of CPU 0 last, as it
/// handles most interrupts. On CPUs with two kinds of cores, the low numbers are the fast ones. `siblings` returns the
/// content of a CPU's `thread_siblings_list`; a CPU without it counts as its own core.
pub fn physical_cores(allowed: &[usize], siblings: impl Fn(usize) -> Option<String>) -> PhysicalCores {
    let mut cores: PhysicalCores = Vec::new();
    for &processor in allowed {
        if cores.iter().any(|core| core.contains(&processor)) {
            continue;
        }
        let listed = siblings(processor).and_then(|text| parse_list(&text)).unwrap_or_default();
        let is_new = |other: &usize| !cores.iter().any(|core| core.contains(other));
        let mut core: Vec<usize> = allowed
            .iter()
            .copied()
            .filter(|other| *other == processor || listed.contains(other) && is_new(other))
            .collect();
        core.sort_unstable();
        core.dedup();
        cores.push(core);
    }
    cores.sort_by_key(|core| (core.contains(&0), core.first().copied()));
    cores
}

/// Parses a list of CPUs as written by the kernel: `0,4`, `0-1`, `0-3,8-11`.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    /// More CPUs than any machine has.
    const MAX_CPUS: usize = 1 << 16;
    let mut processors = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        processors.extend(first..=last);
    }
    Some(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_parsed_and_invalid_ones_rejected() {
        let table: [(&str, Option<&[usize]>); 11] = [
            ("0\n", Some(&[0])),
            ("0,4\n", Some(&[0, 4])),
            ("0-1", Some(&[0, 1])),
            ("0-2,8-9", Some(&[0, 1, 2, 8, 9])),
            ("", None),
            (",", None),
            ("a", None),
            ("3-1", None),
            ("1-", None),
            ("-1", None),
            ("0-99999999999", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_list(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn cpus_are_grouped_by_core_with_that_of_cpu_0_last() {
        type Row<'a> = (&'a str, &'a [usize], fn(usize) -> Option<String>, &'a [&'a [usize]]);
        let table: [Row; 8] = [
            ("no hyperthreads", &[0, 1, 2], |cpu| Some(cpu.to_string()), &[&[1], &[2], &[0]]),
            (
                "siblings far apart",
                &[0, 1, 2, 3],
                |cpu| Some(format!("{},{}", cpu % 2, cpu % 2 + 2)),
                &[&[1, 3], &[0, 2]],
            ),
            (
                "siblings side by side",
                &[0, 1, 2, 3],
                |cpu| Some(format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1)),
                &[&[2, 3], &[0, 1]],
            ),
            (
                "two fast cores with hyperthreads, two slow ones without",
                &[0, 1, 2, 3, 4, 5],
                |cpu| Some(if cpu < 4 { format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1) } else { cpu.to_string() }),
                &[&[2, 3], &[4], &[5], &[0, 1]],
            ),
            ("no list", &[0, 1], |_| None, &[&[1], &[0]]),
            ("an invalid list", &[0, 1], |_| Some("?".to_owned()), &[&[1], &[0]]),
            ("a sibling may not be used", &[1, 2], |cpu| Some(format!("{},{}", cpu, cpu + 4)), &[&[1], &[2]]),
            ("inconsistent lists", &[0, 1, 2], |_| Some("1".to_owned()), &[&[2], &[0, 1]]),
        ];
        for (what, allowed, siblings, expected) in table {
            assert_eq!(physical_cores(allowed, siblings), expected, "{what}");
        }
    }
}
