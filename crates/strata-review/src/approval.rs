//! Whose approval of a request is an approval of its plan.
//!
//! What was approved is the plan that our status of the head showed at that time. A comment can be edited by others, so it decides nothing: a
//! status names who posted it and when, and cannot be edited.

use std::collections::BTreeSet;

use jiff::Timestamp;
use strata_forge::{Approval, ChangeRequest, Outcome, PostedStatus};

use crate::announce::digest_of;
use crate::range::short;

/// The plan that a commit shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub digest: String,
    /// Since when, without another plan in between.
    pub since: Timestamp,
}

/// What our statuses of a commit show: the last plan, if nothing else was said since. Statuses of others count for nothing.
pub fn shown(statuses: &[PostedStatus], me: &str, context: &str) -> Option<Shown> {
    let is_ours = |status: &&PostedStatus| status.author.as_deref() == Some(me) && status.context == context;
    let mut own: Vec<&PostedStatus> =
        statuses.iter().filter(is_ours).filter(|status| status.outcome != Outcome::Pending).collect();
    own.sort_by_key(|status| status.at);
    let digest = digest_of(&own.last()?.description)?.to_owned();
    let plans = own.iter().rev().filter_map(|status| Some((digest_of(&status.description)?, status.at)));
    let since = plans.take_while(|(other, _)| *other == digest).map(|(_, at)| at).last()?;
    Some(Shown { digest, since })
}

/// Who approved a plan, and why others who approved do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    pub by: BTreeSet<String>,
    pub others: Vec<String>,
}

/// Sorts approvals of a request: those of the shown plan, and others.
pub fn count(request: &ChangeRequest, approvals: &[Approval], me: &str, shown: &Shown) -> Counted {
    let mut counted = Counted::default();
    for approval in approvals {
        match why_not(request, approval, me, shown) {
            None => drop(counted.by.insert(approval.by.clone())),
            Some(why) => {
                counted.others.push(format!("the approval of `{}` does not count: {why}", approval.by))
            }
        }
    }
    counted
}

fn why_not(request: &ChangeRequest, approval: &Approval, me: &str, shown: &Shown) -> Option<String> {
    let is = |name: &str| approval.by.eq_ignore_ascii_case(name);
    if is(&request.author) {
        return Some("the request is theirs".to_owned());
    }
    if is(me) || approval.is_bot {
        return Some("no person gave it".to_owned());
    }
    if !approval.may_write {
        return Some("they may not write to the repository".to_owned());
    }
    if approval.head != request.head {
        return Some(format!("it is of {}, and the head is {}", short(&approval.head), short(&request.head)));
    }
    // Within one second nobody read a plan.
    (approval.at <= shown.since).then(|| "it was given before this plan was there".to_owned())
}

#[cfg(test)]
mod tests {
    use strata_forge::RequestState;

    use super::*;
    use crate::announce::description;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn digest(digit: char) -> String {
        digit.to_string().repeat(64)
    }

    fn posted(author: &str, outcome: Outcome, text: &str, second: i64) -> PostedStatus {
        let (context, description) = ("c".to_owned(), text.to_owned());
        PostedStatus { author: Some(author.to_owned()), outcome, context, description, at: at(second) }
    }

    fn plan(author: &str, digit: char, second: i64) -> PostedStatus {
        posted(author, Outcome::Success, &description(&digest(digit), "1 to create"), second)
    }

    #[test]
    fn the_last_plan_of_ours_is_shown_since_it_was_first_there() {
        let pending = |second| posted("us", Outcome::Pending, "planning", second);
        let failed = |second| posted("us", Outcome::Failure, "not planned", second);
        let seen = |statuses: &[PostedStatus]| shown(statuses, "us", "c").map(|one| (one.digest, one.since));
        assert_eq!(seen(&[]), None);
        assert_eq!(seen(&[plan("them", 'a', 1), pending(2)]), None);
        assert_eq!(seen(&[plan("us", 'a', 1)]), Some((digest('a'), at(1))));
        // Planned twice with the same result: what was approved in between stays approved.
        assert_eq!(
            seen(&[plan("us", 'a', 1), pending(2), plan("us", 'a', 3), pending(4)]),
            Some((digest('a'), at(1)))
        );
        assert_eq!(seen(&[plan("us", 'a', 1), failed(2), plan("us", 'a', 3)]), Some((digest('a'), at(1))));
        // Another plan in between: the first time does not count any more.
        assert_eq!(
            seen(&[plan("us", 'a', 1), plan("us", 'b', 2), plan("us", 'a', 3)]),
            Some((digest('a'), at(3)))
        );
        assert_eq!(seen(&[plan("us", 'a', 1), plan("them", 'b', 2)]), Some((digest('a'), at(1))));
        assert_eq!(seen(&[plan("us", 'a', 1), failed(2)]), None);
        assert_eq!(shown(&[plan("us", 'a', 1)], "us", "another"), None);
    }

    #[test]
    fn an_approval_counts_for_one_head_one_plan_and_from_a_person() {
        let request = ChangeRequest {
            number: 1,
            author: "ann".into(),
            state: RequestState::Merged,
            head: "h2".into(),
            base: "main".into(),
            merge_commit: None,
            is_fork: false,
        };
        let shown = Shown { digest: digest('a'), since: at(10) };
        let good =
            Approval { by: "bob".into(), is_bot: false, may_write: true, head: "h2".into(), at: at(11) };
        let of = |approval: Approval| count(&request, &[approval], "us", &shown);
        assert_eq!(of(good.clone()).by, BTreeSet::from(["bob".to_owned()]));
        let bad = [
            (Approval { by: "Ann".into(), ..good.clone() }, "the request is theirs"),
            (Approval { by: "us".into(), ..good.clone() }, "no person gave it"),
            (Approval { is_bot: true, ..good.clone() }, "no person gave it"),
            (Approval { may_write: false, ..good.clone() }, "they may not write"),
            (Approval { head: "h1".into(), ..good.clone() }, "it is of h1"),
            (Approval { at: at(10), ..good.clone() }, "before this plan"),
        ];
        for (approval, why) in bad {
            let counted = of(approval);
            assert!(counted.by.is_empty() && counted.others[0].contains(why), "{counted:?}");
        }
    }
}
