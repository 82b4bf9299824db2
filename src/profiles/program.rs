//! The target's own program in a profile. Two builds of it may be files of different names. Pure.

use std::collections::BTreeMap;

use crate::profiles::stacks::Stacks;

/// Gives the program of the candidate the name of the baseline's, so that their functions match.
pub fn unify(baseline: &[Stacks], candidate: &mut [Stacks]) {
    let (Some(name), Some(other)) = (program(baseline), program(candidate)) else { return };
    if name == other {
        return;
    }
    for frame in candidate.iter_mut().flat_map(|stacks| &mut stacks.frames) {
        if frame.module == other {
            frame.module.clone_from(&name);
        }
    }
}

/// Returns the program or library, other than shared ones and the kernel, that is on most stacks.
fn program(all: &[Stacks]) -> Option<String> {
    let mut values: BTreeMap<&str, u64> = BTreeMap::new();
    for stacks in all {
        for sample in &stacks.samples {
            let mut modules: Vec<&str> = stacks.stack(sample).map(|frame| frame.module.as_str()).collect();
            modules.sort_unstable();
            modules.dedup();
            for module in modules.into_iter().filter(|module| is_program(module)) {
                *values.entry(module).or_default() += sample.value;
            }
        }
    }
    values.into_iter().max_by_key(|(_, value)| *value).map(|(module, _)| module.to_owned())
}

fn is_program(module: &str) -> bool {
    !module.is_empty() && !module.starts_with('[') && !module.contains(".so")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::stacks::{Frame, Sample};

    fn stacks(modules: &[&str]) -> Stacks {
        let frame =
            |module: &&str| Frame { function: "f".to_owned(), module: (*module).to_owned(), ..Frame::default() };
        let stack = (0..u32::try_from(modules.len()).expect("few")).collect();
        Stacks { frames: modules.iter().map(frame).collect(), samples: vec![Sample { stack, value: 3 }] }
    }

    #[test]
    fn only_the_program_gets_the_name_of_the_other_build() {
        let baseline = [stacks(&["/usr/lib/libc.so.6", "/srv/shop-1.2", "[kernel.kallsyms]"])];
        let mut candidate = [stacks(&["/srv/shop-1.3", "/usr/lib/libc.so.6"])];
        unify(&baseline, &mut candidate);
        let modules: Vec<_> = candidate[0].frames.iter().map(|frame| frame.module.as_str()).collect();
        assert_eq!(modules, ["/srv/shop-1.2", "/usr/lib/libc.so.6"]);
    }
}
