//! From one list of rules to another while packets are judged by it: a rule that keeps out is in force only after those that let in.
//!
//! New rules go in switched off, into their places, before anything goes. Then those that let in are switched on, then the
//! others, each from above; what is no longer wanted goes last, from below. Each step is worked out from what is live, so a
//! run that died on the way is taken up by the next one.

use strata_resource::Value;

use crate::firewall::{Differing, RuleStep, differing, switched_off};

/// What to do first to bring `live` closer to `wanted`; none if they are equal.
pub(super) fn next_step(live: &[Value], wanted: &[Value]) -> Option<RuleStep> {
    let Differing { same, old, new } = differing(live, wanted);
    match (old, new) {
        ([], []) => return None,
        // One call, with nothing between before and after.
        ([_], [rule]) => return Some(RuleStep::Replace { at: same, rule: rule.clone() }),
        _ => {}
    }
    if let Some(step) = finish_insert(live, wanted) {
        return Some(step);
    }
    let there = alike(old, new);
    if let Some(rule) = new.get(there) {
        // What lets in and is the first of all stands where it belongs at once.
        let at_home = same + there == 0 && lets_in(rule);
        return Some(RuleStep::Insert { rule: if at_home { rule.clone() } else { switched_off(rule) } });
    }
    let open = || old.iter().zip(new).enumerate().filter(|(_, (live, wanted))| live != wanted);
    // On: first what lets in. Off: first what keeps out.
    let widens = |rule: &Value| lets_in(rule) == is_on(rule);
    let next = open().find(|(_, (_, wanted))| widens(wanted)).or_else(|| open().next());
    Some(match next {
        Some((at, (_, rule))) => RuleStep::Replace { at: same + at, rule: rule.clone() },
        None => RuleStep::Delete { at: same + old.len() - 1 },
    })
}

/// How many rules from above are the same, whether they are on or off.
fn alike(live: &[Value], wanted: &[Value]) -> usize {
    live.iter()
        .zip(wanted)
        .take_while(|(live, wanted)| live == wanted || switched_off(live) == switched_off(wanted))
        .count()
}

/// A rule that was put in at the top and still has to go to its place.
fn finish_insert(live: &[Value], wanted: &[Value]) -> Option<RuleStep> {
    let (top, rest) = live.split_first()?;
    let place = alike(rest, wanted);
    let fits = place > alike(live, wanted) && switched_off(wanted.get(place)?) == *top;
    fits.then_some(RuleStep::MoveTop { before: place + 1 })
}

fn lets_in(rule: &Value) -> bool {
    rule.as_map().and_then(|rule| rule.get("action")?.as_text()) == Some("ACCEPT")
}

fn is_on(rule: &Value) -> bool {
    rule.as_map().and_then(|rule| rule.get("enable")?.as_bool()) == Some(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strata_resource::Spec;

    use super::*;

    /// Letters from A are rules that let in, those from V keep out; lower case is a rule that is off.
    fn rule(name: char) -> Value {
        let action = if name.to_ascii_uppercase() < 'V' { "ACCEPT" } else { "DROP" };
        let spec: Spec = [
            ("type".to_owned(), "in".into()),
            ("action".to_owned(), action.into()),
            ("source".to_owned(), Value::Text(name.to_ascii_uppercase().to_string())),
            ("enable".to_owned(), Value::Bool(name.is_ascii_uppercase())),
        ]
        .into();
        Value::Map(spec)
    }

    fn rules(text: &str) -> Vec<Value> {
        text.chars().map(rule).collect()
    }

    fn text(rules: &[Value]) -> String {
        let name = |rule: &Value| {
            let name = rule.as_map().unwrap()["source"].as_text().unwrap().to_owned();
            if is_on(rule) { name } else { name.to_lowercase() }
        };
        rules.iter().map(name).collect()
    }

    fn apply(live: &mut Vec<Value>, step: RuleStep) {
        match step {
            RuleStep::Replace { at, rule } => live[at] = rule,
            RuleStep::Delete { at } => drop(live.remove(at)),
            RuleStep::Insert { rule } => live.insert(0, rule),
            RuleStep::MoveTop { before } => {
                let rule = live.remove(0);
                live.insert(before - 1, rule);
            }
        }
    }

    /// The lists on the way, with the first and the last.
    fn way(live: &str, wanted: &str) -> Vec<String> {
        let (mut live, wanted) = (rules(live), rules(wanted));
        let mut way = vec![text(&live)];
        while let Some(step) = next_step(&live, &wanted) {
            apply(&mut live, step);
            way.push(text(&live));
            // As many as a run takes before it gives up.
            assert!(way.len() < 12 + 4 * (live.len() + wanted.len()), "no end: {way:?}");
        }
        assert_eq!(live, wanted);
        way
    }

    #[test]
    fn what_keeps_out_comes_last() {
        assert_eq!(way("", "ABZ"), ["", "A", "bA", "Ab", "zAb", "Abz", "ABz", "ABZ"]);
        assert_eq!(way("", "ZA"), ["", "z", "az", "za", "zA", "ZA"]);
        assert_eq!(way("AB", "BZ"), ["AB", "BAB", "zBAB", "BzAB", "BZAB", "BZA", "BZ"]);
        // One rule is changed, inserted, or deleted as before.
        assert_eq!(way("ABC", "AXC").len(), 2);
        assert_eq!(way("ABC", "AC").len(), 2);
        assert_eq!(way("BC", "ABC").len(), 2);
        assert_eq!(way("AC", "ABC").len(), 4);
    }

    /// The rule that decides about a packet.
    fn verdict(rules: &str, packet: &str) -> Option<bool> {
        rules.chars().find(|rule| packet.contains(*rule)).map(|rule| rule < 'V')
    }

    proptest! {
        #[test]
        fn every_list_is_reached(live in "[A-CX-Za-cx-z]{0,6}", wanted in "[A-CX-Za-cx-z]{0,6}") {
            way(&live, &wanted);
        }

        /// Whoever is let in before and after is let in on the way, whatever the policy is.
        #[test]
        fn nobody_is_locked_out_on_the_way(live in "[A-CX-Z]{0,5}", wanted in "[A-CX-Z]{0,5}", packet in "[A-C][A-CX-Z]{0,2}") {
            for policy in [true, false] {
                let passes = |rules: &str| verdict(rules, &packet).unwrap_or(policy);
                if passes(&live) && passes(&wanted) {
                    for step in way(&live, &wanted) {
                        prop_assert!(passes(&step), "{live} -> {wanted}: {step} stops {packet}");
                    }
                }
            }
        }
    }
}
