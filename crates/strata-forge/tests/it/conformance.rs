//! One suite for GitHub, GitLab and Gitea.

use strata_forge::{
    Forge, ForgeOptions, Kind, Outcome, RequestState, Status, Upserted, connect, upsert_comment, upsert_issue,
};
use strata_secret::SecretString;
use strata_testkit::{Dialect, FakeForge, Fault};

const MARKER: &str = "<!-- mine -->";

/// A commit of a test.
pub(crate) fn commit(digit: char) -> String {
    digit.to_string().repeat(40)
}

/// A forge with people, and a connection of its user `strata`.
pub(crate) struct Desk {
    pub(crate) server: FakeForge,
    pub(crate) forge: Box<dyn Forge>,
}

pub(crate) fn options(dialect: Dialect, url: &str, token: &str) -> ForgeOptions {
    let kind = match dialect {
        Dialect::GitHub => Kind::GitHub,
        Dialect::GitLab => Kind::GitLab,
        Dialect::Gitea => Kind::Gitea,
    };
    ForgeOptions::new(kind, url, "ops/infra", SecretString::new(token))
}

impl Desk {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let server = FakeForge::start(dialect);
        let token = server.user("strata", true, false);
        for name in ["ann", "bobby", "chris"] {
            server.user(name, true, false);
        }
        server.user("guest", false, false);
        server.user("robot", true, true);
        let forge = connect(options(dialect, server.url(), &token)).unwrap();
        Self { server, forge }
    }
}

fn each() -> impl Iterator<Item = (Dialect, Desk)> {
    Dialect::ALL.into_iter().map(|dialect| (dialect, Desk::new(dialect)))
}

#[tokio::test]
async fn a_request_is_found_by_its_head_and_by_its_merge() {
    for (dialect, Desk { server, forge }) in each() {
        let number = server.open("ann", &commit('a'));
        for digit in ['1', '2', '3', '4', '5'] {
            server.open("bobby", &commit(digit));
        }
        let found = forge.requests_of(&commit('a')).await.unwrap();
        assert_eq!(found.len(), 1, "{dialect:?}");
        assert_eq!((found[0].number, found[0].author.as_str()), (number, "ann"), "{dialect:?}");
        assert_eq!(
            (found[0].state, found[0].merge_commit.as_deref()),
            (RequestState::Open, None),
            "{dialect:?}"
        );
        assert_eq!((found[0].base.as_str(), found[0].is_fork), ("main", false), "{dialect:?}");
        assert_eq!(forge.requests_of(&commit('5')).await.unwrap().len(), 1, "{dialect:?}: on a later page");
        // A head of before is not what the request is about any more.
        server.push(number, &commit('b'));
        assert!(forge.requests_of(&commit('a')).await.unwrap().is_empty(), "{dialect:?}");
        server.merge(number, &commit('c'));
        let merged = forge.requests_of(&commit('c')).await.unwrap();
        assert_eq!(merged.len(), 1, "{dialect:?}");
        assert_eq!(
            (merged[0].state, merged[0].head.clone()),
            (RequestState::Merged, commit('b')),
            "{dialect:?}"
        );
        assert!(forge.requests_of(&commit('f')).await.unwrap().is_empty(), "{dialect:?}");
        let fork = server.open_fork("guest", &commit('d'));
        assert!(forge.request(fork).await.unwrap().is_fork, "{dialect:?}");
        let error = forge.request(99).await.unwrap_err();
        assert!(error.hint().unwrap().contains("TOKEN"), "{dialect:?}: {error}");
    }
}

#[tokio::test]
async fn one_comment_of_our_own_is_kept_up_to_date() {
    for (dialect, Desk { server, forge }) in each() {
        let number = server.open("ann", &commit('a'));
        // Somebody else was there first, with our marker; another one quotes it.
        server.comment(number, "guest", &format!("{MARKER}\napproved, digest 0000"));
        server.comment(number, "strata", &format!("see {MARKER}"));
        for place in 0..4 {
            server.comment(number, "bobby", &format!("talk {place}"));
        }
        let upsert = async |text: &str| {
            upsert_comment(forge.as_ref(), number, MARKER, &format!("{MARKER}\n{text}")).await.unwrap()
        };
        assert_eq!(upsert("one").await, Upserted::Added, "{dialect:?}");
        assert_eq!(upsert("one").await, Upserted::Unchanged, "{dialect:?}");
        assert_eq!(upsert("two").await, Upserted::Edited, "{dialect:?}");
        let comments = server.comments(number);
        assert_eq!(comments.len(), 7, "{dialect:?}");
        assert_eq!(comments[0].1, format!("{MARKER}\napproved, digest 0000"), "{dialect:?}");
        assert_eq!(comments[6], ("strata".into(), format!("{MARKER}\ntwo")), "{dialect:?}");
        // Whatever somebody made of it, it says again what it said.
        server.rewrite(number, 6, &format!("{MARKER}\nall is well"));
        assert_eq!(upsert("two").await, Upserted::Edited, "{dialect:?}");
        assert_eq!(server.comments(number)[6].1, format!("{MARKER}\ntwo"), "{dialect:?}");
        // An answer that was lost makes no second comment.
        let other = server.open("ann", &commit('b'));
        for done in [true, false] {
            // Both questions go well, then the new comment does not.
            let before = server.comments(other).len();
            let marker = format!("<!-- {done} -->");
            for _ in 0..2 {
                server.fault(Fault { status: 200, headers: Vec::new(), is_done: true });
            }
            server.fault(Fault { status: 502, headers: Vec::new(), is_done: done });
            let result = upsert_comment(forge.as_ref(), other, &marker, &format!("{marker}\nx")).await;
            let is_there = server.comments(other).len() > before;
            assert_eq!((result.is_ok(), is_there), (done, done), "{dialect:?} {result:?}");
        }
    }
}

#[tokio::test]
async fn statuses_name_who_posted_them_and_when() {
    for (dialect, Desk { server, forge }) in each() {
        let head = commit('a');
        let post = async |outcome, description: &str| {
            let status = Status { outcome, context: "strata/x/plan".into(), description: description.into() };
            forge.set_status(&head, &status).await.unwrap();
        };
        post(Outcome::Pending, "planning").await;
        post(Outcome::Pending, "planning").await;
        server.post_status(&head, "bobby", "strata/x/plan", "plan 0000: by somebody else");
        let number = server.open("ann", &head);
        server.approve(number, "bobby");
        post(Outcome::Success, &format!("plan {}", "x".repeat(300))).await;
        post(Outcome::Failure, "no").await;
        let posted = forge.statuses(&head).await.unwrap();
        let own: Vec<_> = posted.iter().filter(|one| one.author.as_deref() == Some("strata")).collect();
        let last = own[own.len() - 2];
        assert_eq!(
            (last.outcome, own[own.len() - 1].outcome),
            (Outcome::Success, Outcome::Failure),
            "{dialect:?}"
        );
        assert_eq!(last.description.chars().count(), 140, "{dialect:?}");
        assert_eq!(
            posted.iter().filter(|one| one.author.as_deref() == Some("bobby")).count(),
            1,
            "{dialect:?}"
        );
        // What was said after an approval is later than it, also where a pending status became another one.
        let request = forge.request(number).await.unwrap();
        let approved = forge.approvals(&request).await.unwrap()[0].at;
        assert!(last.at > approved, "{dialect:?}: {} {approved}", last.at);
        assert!(forge.statuses(&commit('f')).await.unwrap().is_empty(), "{dialect:?}");
    }
}

#[tokio::test]
async fn approvals_are_the_last_word_of_each_and_of_one_head() {
    for (dialect, Desk { server, forge }) in each() {
        let number = server.open("ann", &commit('a'));
        let approvals = async || {
            let request = forge.request(number).await.unwrap();
            let mut all = forge.approvals(&request).await.unwrap();
            all.sort_by(|one, other| one.by.cmp(&other.by));
            all
        };
        assert!(approvals().await.is_empty(), "{dialect:?}");
        for who in ["ann", "bobby", "chris", "guest", "robot"] {
            server.approve(number, who);
        }
        let all = approvals().await;
        assert_eq!(all.len(), 5, "{dialect:?}: {all:?}");
        assert!(all.iter().all(|one| one.head == commit('a')), "{dialect:?}: {all:?}");
        let of = |name: &str| all.iter().find(|one| one.by == name).unwrap();
        assert!(of("robot").is_bot && !of("bobby").is_bot, "{dialect:?}: {all:?}");
        assert!(of("bobby").may_write && !of("guest").may_write, "{dialect:?}: {all:?}");
        server.withdraw(number, "chris");
        assert!(!approvals().await.iter().any(|one| one.by == "chris"), "{dialect:?}");
        if dialect != Dialect::GitLab {
            server.object(number, "bobby");
            assert!(!approvals().await.iter().any(|one| one.by == "bobby"), "{dialect:?}");
        }
        // After a push nothing of it is about the head.
        server.push(number, &commit('b'));
        assert!(approvals().await.iter().all(|one| one.head != commit('b')), "{dialect:?}");
        server.approve(number, "bobby");
        let all = approvals().await;
        assert!(all.iter().any(|one| one.by == "bobby" && one.head == commit('b')), "{dialect:?}: {all:?}");
    }
}

#[tokio::test]
async fn one_issue_is_opened_edited_and_closed() {
    for (dialect, Desk { server, forge }) in each() {
        server.open("strata", &commit('a'));
        server.issue("guest", "drift", &format!("{MARKER}\nnothing to see"));
        let upsert = async |content| upsert_issue(forge.as_ref(), MARKER, content).await.unwrap();
        let (one, two) = (format!("{MARKER}\none"), format!("{MARKER}\ntwo"));
        assert_eq!(upsert(None).await, None, "{dialect:?}");
        assert_eq!(upsert(Some(("drift", one.as_str()))).await, Some(Upserted::Added), "{dialect:?}");
        assert_eq!(upsert(Some(("drift", one.as_str()))).await, Some(Upserted::Unchanged), "{dialect:?}");
        assert_eq!(upsert(Some(("more drift", two.as_str()))).await, Some(Upserted::Edited), "{dialect:?}");
        assert_eq!(upsert(None).await, Some(Upserted::Edited), "{dialect:?}");
        assert_eq!(upsert(None).await, None, "{dialect:?}");
        let issues = server.issues();
        assert_eq!(issues.len(), 2, "{dialect:?}");
        assert!(issues[0].2 && issues[0].1.ends_with("nothing to see"), "{dialect:?}");
        assert_eq!(issues[1], ("more drift".into(), two.clone(), false), "{dialect:?}");
        // The next drift is an issue of its own.
        assert_eq!(upsert(Some(("drift", one.as_str()))).await, Some(Upserted::Added), "{dialect:?}");
    }
}
