//! From one list of rules to another in small steps, each of which is one call.
//!
//! Rules have positions and no names, and a new one goes in at the top. So the next step is worked out again from what is live
//! after each call: a call whose answer was lost, or a run that died between two of them, changes nothing about that.

use strata_resource::Value;

use super::switched_off;

/// The next call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleStep {
    /// Changes the rule at a position.
    Replace {
        at: usize,
        rule: Value,
    },
    Delete {
        at: usize,
    },
    /// Puts a rule in at the top.
    Insert {
        rule: Value,
    },
    /// Moves the topmost rule so that it stands before the one that is now at `before`.
    MoveTop {
        before: usize,
    },
}

/// Where two lists of rules differ, between what they begin and end with alike.
pub(crate) struct Differing<'a> {
    /// So many rules are the same at the beginning.
    pub(crate) same: usize,
    pub(crate) old: &'a [Value],
    pub(crate) new: &'a [Value],
}

pub(crate) fn differing<'a>(live: &'a [Value], wanted: &'a [Value]) -> Differing<'a> {
    let same = live.iter().zip(wanted).take_while(|(live, wanted)| live == wanted).count();
    let same_end = live[same..]
        .iter()
        .rev()
        .zip(wanted[same..].iter().rev())
        .take_while(|(live, wanted)| live == wanted)
        .count();
    Differing { same, old: &live[same..live.len() - same_end], new: &wanted[same..wanted.len() - same_end] }
}

/// What to do first to bring `live` closer to `wanted`; none if they are equal.
pub(crate) fn next_step(live: &[Value], wanted: &[Value]) -> Option<RuleStep> {
    let Differing { same, old, new } = differing(live, wanted);
    match (old, new) {
        ([], []) => None,
        ([], new) => Some(insert(same, new)),
        (_, []) => Some(RuleStep::Delete { at: same + old.len() - 1 }),
        ([.., last], [.., wanted_last]) => {
            if let Some(step) = finish_insert(live, wanted) {
                return Some(step);
            }
            // The rules that stay are found from both ends; what is between is edited from below, so that no rule that is
            // still wanted is overtaken by one above it.
            if old.len() > new.len() && old[..old.len() - 1].contains(wanted_last) {
                return Some(RuleStep::Delete { at: same + old.len() - 1 });
            }
            if new.len() > old.len() && new[..new.len() - 1].contains(last) {
                return Some(insert(same + old.len(), &new[position(new, last) + 1..]));
            }
            Some(RuleStep::Replace { at: same + old.len() - 1, rule: wanted_last.clone() })
        }
    }
}

fn position(rules: &[Value], rule: &Value) -> usize {
    rules.iter().rposition(|other| other == rule).unwrap_or_default()
}

/// The last of the new rules first: each of those above then goes in at the same place. A rule that is not at home at the top
/// goes in switched off.
fn insert(at: usize, new: &[Value]) -> RuleStep {
    let rule = new.last().cloned().unwrap_or(Value::Unknown);
    RuleStep::Insert { rule: if at == 0 { rule } else { switched_off(&rule) } }
}

/// A rule that was put in at the top, switched off, and still has to go to its place.
fn finish_insert(live: &[Value], wanted: &[Value]) -> Option<RuleStep> {
    let (top, rest) = live.split_first()?;
    if rest.len() >= wanted.len() || wanted.first() == Some(top) {
        return None;
    }
    // Where the rest is what is wanted but for one rule, and that rule is this one.
    let place = rest.iter().zip(wanted).take_while(|(live, wanted)| live == wanted).count();
    let wanted_here = wanted.get(place)?;
    let fits = place > 0 && switched_off(wanted_here) == *top;
    fits.then_some(RuleStep::MoveTop { before: place + 1 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strata_resource::Spec;

    use super::*;

    fn rule(name: char, on: bool) -> Value {
        let spec: Spec = [
            ("type".to_owned(), "in".into()),
            ("action".to_owned(), Value::Text(name.to_string())),
            ("enable".to_owned(), Value::Bool(on)),
        ]
        .into();
        Value::Map(spec)
    }

    /// Lower case is a rule that is off.
    fn rules(text: &str) -> Vec<Value> {
        text.chars().map(|name| rule(name.to_ascii_uppercase(), name.is_ascii_uppercase())).collect()
    }

    fn apply(live: &mut Vec<Value>, step: RuleStep) {
        match step {
            RuleStep::Replace { at, rule } => live[at] = rule,
            RuleStep::Delete { at } => {
                live.remove(at);
            }
            RuleStep::Insert { rule } => live.insert(0, rule),
            RuleStep::MoveTop { before } => {
                let rule = live.remove(0);
                live.insert(before - 1, rule);
            }
        }
    }

    fn steps(live: &str, wanted: &str) -> usize {
        let (mut live, wanted) = (rules(live), rules(wanted));
        for made in 0..200 {
            let Some(step) = next_step(&live, &wanted) else { return made };
            apply(&mut live, step);
        }
        panic!("no end");
    }

    #[test]
    fn small_changes_take_few_calls() {
        for (live, wanted, calls) in [
            ("", "", 0),
            ("ABC", "ABC", 0),
            ("", "ABC", 3),
            ("ABC", "", 3),
            ("ABC", "AXC", 1),
            ("ABC", "AC", 1),
            ("BC", "ABC", 1),
            // Put in, moved, switched on.
            ("AC", "ABC", 3),
            ("AB", "ABC", 3),
        ] {
            assert_eq!(steps(live, wanted), calls, "{live} -> {wanted}");
        }
    }

    proptest! {
        #[test]
        fn every_list_is_reached(live in "[A-Da-d]{0,7}", wanted in "[A-Da-d]{0,7}") {
            prop_assert!(steps(&live, &wanted) <= 60);
        }
    }
}
