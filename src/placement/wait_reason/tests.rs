use super::*;
use crate::dispatch::queue::list::fixtures::{agent, needs, working};

fn describe(needs: &Needs<'_>, connected: &[(String, Connected)]) -> (Reason, String) {
    let eligible = needs.agent.map_or(EligibleAgents::Any, |name| EligibleAgents::Only(name.to_owned()));
    let wait = wait_reason(needs, &eligible, connected, &[]);
    (wait.reason, wait.sentence)
}

#[test]
fn the_reason_names_the_obstacle_of_the_closest_agents() {
    let small = agent("small", |agent| Arc::make_mut(&mut agent.hello).machine.cores = 1);
    let poor = agent("poor", |agent| Arc::make_mut(&mut agent.hello).targets.clear());
    let (reason, sentence) = describe(&needs("fast"), std::slice::from_ref(&poor));
    assert_eq!((reason, sentence.as_str()), (Reason::NotOffered, "no connected agent offers fast"));
    let (reason, sentence) = describe(&needs("fast"), &[poor.clone(), small.clone()]);
    assert_eq!(reason, Reason::DoesNotFit);
    assert_eq!(sentence, "no agent that offers fast can provide 2/4GiB: small has 1 core");
    let foreign = Needs { source: Source::User, ..needs("fast") };
    assert_eq!(describe(&foreign, &[agent("rack", |_| ()), small]).0, Reason::ScriptNotTaken);
    let unwilling = agent("rack", |agent| {
        agent.declined.insert(needs("fast").run);
    });
    assert_eq!(describe(&needs("fast"), &[poor, unwilling]).0, Reason::Declined);
}

#[test]
fn able_agents_are_listed_with_what_they_wait_for() {
    let (rack, busy) = (agent("rack", |_| ()), agent("busy", working));
    let drained = agent("tired", |agent| agent.availability = Availability::Drained);
    assert_eq!(describe(&needs("fast"), &[busy.clone(), rack]).0, Reason::Soon);
    let wait = wait_reason(&needs("fast"), &EligibleAgents::Any, &[busy.clone(), drained.clone()], &[]);
    assert_eq!((wait.reason, wait.agents), (Reason::Busy, vec!["busy".to_owned()]));
    let (reason, sentence) = describe(&needs("fast"), &[drained]);
    assert_eq!((reason, sentence.as_str()), (Reason::Drained, "tired is drained"));
    let full = agent("full", |agent| agent.fault = Some("the disk is full".to_owned()));
    let (reason, sentence) = describe(&needs("fast"), std::slice::from_ref(&full));
    assert_eq!((reason, sentence.as_str()), (Reason::Faulty, "full takes no runs: the disk is full"));
    assert_eq!(describe(&needs("fast"), &[full, busy.clone()]).0, Reason::Busy);
    let only = Needs { agent: Some("rack"), ..needs("fast") };
    let (reason, sentence) = describe(&only, std::slice::from_ref(&busy));
    assert_eq!(reason, Reason::Away);
    assert!(sentence.contains("rack, which no longer exists"), "{sentence}");
    let home = EligibleAgents::Home("rack".to_owned());
    let wait = wait_reason(&needs("fast"), &home, std::slice::from_ref(&busy), &[]);
    assert!(wait.sentence.starts_with("its experiment is measured on rack, which is not connected"), "{wait:?}");
    let wait = wait_reason(&Needs { block: 2, ..needs("fast") }, &home, &[busy], &[]);
    assert!(wait.sentence.starts_with("its repetition is measured on rack, which is not connected"), "{wait:?}");
}

#[test]
fn only_agents_with_the_requested_label_are_considered() {
    let (eligible, needs) = (EligibleAgents::Labelled("arm".to_owned()), Needs { label: Some("arm"), ..needs("fast") });
    let plain = agent("plain", |_| ());
    let wait = wait_reason(&needs, &eligible, std::slice::from_ref(&plain), &[]);
    let expected = "it requires the label arm, and there is no such agent";
    assert_eq!((wait.reason, wait.sentence.as_str()), (Reason::Away, expected));
    let arm = |agent: &mut Connected| agent.labels = ["arm".to_owned()].into();
    let poor = agent("poor", |agent| {
        arm(agent);
        Arc::make_mut(&mut agent.hello).targets.clear();
    });
    let wait = wait_reason(&needs, &eligible, &[plain.clone(), poor], &[]);
    assert_eq!(wait.sentence, "no connected agent labelled arm offers fast");
    let wait = wait_reason(&needs, &eligible, &[plain, agent("rack", arm)], &[]);
    assert_eq!((wait.reason, wait.agents), (Reason::Soon, vec!["rack".to_owned()]));
}

#[test]
fn a_distributed_run_needs_a_host_that_accepts_load_and_all_generators() {
    let generators = ["one".to_owned(), "two".to_owned()];
    let needs = Needs { generators: &generators, source: Source::User, ..needs("fast") };
    let open = |agent: &mut Connected| Arc::make_mut(&mut agent.hello).load_address = Some([10, 0, 0, 5].into());
    let willing = |agent: &mut Connected| Arc::make_mut(&mut agent.hello).any_scenario = true;
    let describe = |connected: &[(String, Connected)]| {
        let wait = wait_reason(&needs, &EligibleAgents::Any, connected, &[]);
        (wait.reason, wait.sentence)
    };
    let all = [agent("rack", |_| ()), agent("one", willing), agent("two", willing)];
    let (reason, sentence) = describe(&all);
    assert_eq!(reason, Reason::NoLoadAddress);
    assert!(sentence.contains("--load-address"), "{sentence}");
    let fixed = agent("rack", |agent| {
        open(agent);
        Arc::make_mut(&mut agent.hello).targets[0].anywhere = false;
    });
    assert!(describe(&[fixed, all[1].clone(), all[2].clone()]).1.contains("{host}"));
    let rack = agent("rack", open);
    assert_eq!(describe(&[rack.clone(), all[1].clone(), all[2].clone()]).0, Reason::Soon);
    let away = describe(&[rack.clone(), all[1].clone()]);
    assert_eq!(away, (Reason::Away, "its load generator two is not connected".to_owned()));
    let unwilling = agent("two", |_| ());
    assert_eq!(describe(&[rack.clone(), all[1].clone(), unwilling.clone()]).0, Reason::ScriptNotTaken);
    let busy = agent("one", |agent| {
        willing(agent);
        working(agent);
    });
    assert_eq!(describe(&[rack.clone(), busy.clone(), all[2].clone()]).0, Reason::Busy);
    assert_eq!(describe(&[rack, busy, unwilling]).0, Reason::ScriptNotTaken, "what needs action comes first");
}

#[test]
fn names_are_listed_with_and_before_the_last() {
    assert_eq!(are(&["a"]), "a is");
    assert_eq!(are(&["a", "b", "c"]), "a, b and c are");
}
