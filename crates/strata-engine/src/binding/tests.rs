use strata_resource::{Address, Lineage};

use super::*;
use crate::plan::{PlanContent, Problem, ProblemKind};

fn address() -> Address {
    crate::test_kinds::address("s/vm/web")
}

fn plan(live: Option<&str>, unknown: Vec<Problem>) -> Plan {
    Plan::new(content(live, unknown))
}

fn content(live: Option<&str>, unknown: Vec<Problem>) -> PlanContent {
    PlanContent {
        key: "dev/s".to_owned(),
        lineage: Lineage::derive("r", "dev/s"),
        serial: 1,
        steps: Vec::new(),
        problems: Vec::new(),
        open: Vec::new(),
        at_work: None,
        live: [(address(), live.map(str::to_owned))].into(),
        former: Default::default(),
        unchanged: 0,
        unseen: Default::default(),
        unknown,
        in_use: Default::default(),
        moves: Vec::new(),
        left_out: Default::default(),
        ignored: Default::default(),
    }
}

fn hidden(message: &str) -> Problem {
    let (message, hint) = (message.to_owned(), String::new());
    Problem { kind: ProblemKind::Unknown, address: address(), message, hint, origin: None }
}

fn moved(then: Plan, now: &Plan) -> Vec<String> {
    let mut file = PlanFile::new("1", None, None, false);
    file.push("s", "source", then);
    file.stacks[0].check("source", now).err().map(|stale| stale.moved).unwrap_or_default()
}

/// What was reviewed runs only while everything that it rests on is as it was seen.
#[test]
fn a_plan_is_stale_when_anything_that_it_saw_moved() {
    assert_eq!(moved(plan(Some("a"), Vec::new()), &plan(Some("a"), Vec::new())), [""; 0]);
    assert_eq!(moved(plan(None, Vec::new()), &plan(Some("a"), Vec::new())), ["`s/vm/web` appeared"]);
    assert_eq!(moved(plan(Some("a"), Vec::new()), &plan(None, Vec::new())), ["`s/vm/web` is gone"]);
    assert_eq!(moved(plan(Some("a"), Vec::new()), &plan(Some("b"), Vec::new())), ["`s/vm/web` was changed"]);
    let same = moved(plan(None, vec![hidden("x")]), &plan(None, vec![hidden("x")]));
    assert_eq!(same, [""; 0], "it was told when the plan was reviewed");
    let new = moved(plan(None, vec![hidden("x")]), &plan(None, vec![hidden("y")]));
    assert_eq!(new, ["`s/vm/web`: y"]);
    let other = Plan::new(PlanContent { unchanged: 1, ..content(None, Vec::new()) });
    assert_eq!(moved(plan(None, Vec::new()), &other), ["the same source now gives another plan"]);
}
