use super::*;

fn tofu(id: &str, user: &str) -> Lock {
    let (id, user) = (id.to_owned(), user.to_owned());
    Lock { id, kind: LockKind::Tofu, user, owner: None, info: None, ttl: None, beat: 0 }
}

fn lease(id: &str) -> Lock {
    Lock { kind: LockKind::Lease, ttl: Some(60), ..tofu(id, "ci") }
}

fn version(serial: u64) -> Version {
    Version {
        version: 7,
        serial: Some(serial),
        lineage: Some("l".into()),
        size: 10,
        md5: format!("md5-{serial}"),
        written: 0,
        by: "ci".into(),
        forced: false,
    }
}

fn write(serial: u64) -> Write {
    Write {
        content: Content::Inline(Bytes::new()),
        serial: Some(serial),
        lineage: Some("l".into()),
        size: 10,
        md5: format!("md5-{serial}"),
        lock: None,
        replaces: Replaces::Whatever,
        force: false,
        by: "ci".into(),
        written: 0,
    }
}

fn head(lock: Option<Lock>, serial: Option<u64>) -> Head {
    Head { lock, current: serial.map(version), last_version: 7 }
}

fn written(head: &Head, write: Write) -> Result<Outcome, Refusal> {
    decide(head, &Command::Write(write)).map(|decision| decision.outcome)
}

#[test]
fn serials_only_go_up() {
    let head = head(None, Some(5));
    assert!(matches!(written(&head, write(6)), Ok(Outcome::Written(v)) if v.version == 8 && !v.forced));
    assert_eq!(written(&head, write(4)), Err(Refusal::Older { found: 5, sent: 4 }));
    assert!(matches!(written(&head, write(5)), Ok(Outcome::Unchanged(_))));
    let other = Write { md5: "other".into(), ..write(5) };
    assert_eq!(written(&head, other), Err(Refusal::Older { found: 5, sent: 5 }));
    let none = Write { serial: None, ..write(9) };
    assert_eq!(written(&head, none), Err(Refusal::Older { found: 5, sent: 0 }));
    let forced = written(&head, Write { force: true, ..write(4) });
    assert!(matches!(forced, Ok(Outcome::Written(v)) if v.forced));
}

#[test]
fn a_lineage_is_not_replaced() {
    let other = Write { lineage: Some("m".into()), ..write(9) };
    assert_eq!(written(&head(None, Some(5)), other.clone()), Err(Refusal::Lineage));
    assert!(written(&head(None, None), other).is_ok());
    let none = Write { lineage: None, ..write(9) };
    assert_eq!(written(&head(None, Some(5)), none), Err(Refusal::Lineage));
}

#[test]
fn a_write_names_the_serial_that_it_replaces() {
    let expecting = |serial, replaces| Write { replaces: Replaces::Serial(replaces), ..write(serial) };
    assert!(written(&head(None, Some(5)), expecting(6, 5)).is_ok());
    assert!(written(&head(None, None), expecting(1, 0)).is_ok());
    assert_eq!(written(&head(None, Some(5)), expecting(6, 4)), Err(Refusal::Moved { expected: 4, found: 5 }));
    // The answer was lost and the request is sent again.
    assert!(matches!(written(&head(None, Some(6)), expecting(6, 5)), Ok(Outcome::Unchanged(_))));
}

#[test]
fn only_the_holder_writes() {
    let head = |lock| head(lock, Some(5));
    let with = |id: Option<&str>| Write { lock: id.map(str::to_owned), ..write(6) };
    let held = head(Some(tofu("a", "ci")));
    assert!(written(&held, with(Some("a"))).is_ok());
    assert!(matches!(written(&held, with(None)), Err(Refusal::Held(_))));
    assert!(matches!(written(&held, with(Some("b"))), Err(Refusal::Held(_))));
    assert!(matches!(written(&head(None), with(Some("a"))), Err(Refusal::LockLost { .. })));
    assert!(written(&head(None), with(None)).is_ok());
    let journal = |head: &Head, lock: &str| {
        decide(
            head,
            &Command::AppendJournal {
                lock: lock.to_owned(),
                user: "ci".into(),
                lines: Bytes::from_static(b"x\n"),
            },
        )
    };
    assert!(journal(&held, "a").is_ok());
    assert!(journal(&held, "b").is_err());
    assert!(journal(&head(None), "a").is_err());
    let delete = |lock: Option<&str>| {
        decide(&held, &Command::Delete { lock: lock.map(str::to_owned), user: "ci".into(), force: false })
    };
    assert!(delete(Some("a")).is_ok());
    assert!(matches!(delete(None), Err(Refusal::Held(_))));
}

#[test]
fn one_lock_at_a_time() {
    let lock = |held: Option<Lock>, wanted, lapsed| {
        decide(&head(held, None), &Command::Lock { lock: wanted, lapsed }).map(|decision| decision.outcome)
    };
    let beat = |beat| Some(Beat { id: "a".into(), beat });
    assert_eq!(lock(None, tofu("a", "ci"), None), Ok(Outcome::Locked { from: None }));
    assert_eq!(lock(Some(tofu("a", "ci")), tofu("a", "ci"), None), Ok(Outcome::Locked { from: None }));
    assert!(lock(Some(tofu("a", "ci")), tofu("a", "eve"), None).is_err());
    assert!(lock(Some(tofu("a", "ci")), tofu("b", "ci"), None).is_err());
    // Never an expiry for OpenTofu's.
    assert!(lock(Some(tofu("a", "ci")), tofu("b", "ci"), beat(0)).is_err());
    assert!(lock(Some(lease("a")), lease("b"), None).is_err());
    assert!(lock(Some(lease("a")), lease("b"), beat(1)).is_err(), "a heartbeat came since");
    let taken = Ok(Outcome::Locked { from: Some(lease("a")) });
    assert_eq!(lock(Some(lease("a")), lease("b"), beat(0)), taken);
}

#[test]
fn unlocking_needs_the_id_and_the_user_or_the_right() {
    let unlock = |held: Option<Lock>, id: Option<&str>, user: &str, may_break| {
        let command = Command::Unlock { id: id.map(str::to_owned), user: user.to_owned(), may_break };
        decide(&head(held, None), &command).map(|decision| decision.outcome)
    };
    let held = || Some(tofu("a", "ci"));
    assert_eq!(unlock(held(), Some("a"), "ci", false), Ok(Outcome::Unlocked(held())));
    assert_eq!(unlock(held(), None, "ci", false), Ok(Outcome::Unlocked(held())));
    assert_eq!(unlock(None, Some("a"), "ci", false), Ok(Outcome::Unlocked(None)));
    assert!(matches!(unlock(held(), Some("b"), "ci", true), Err(Refusal::LockLost { .. })));
    for id in [Some("a"), Some("b"), None] {
        assert!(matches!(unlock(held(), id, "eve", false), Err(Refusal::NotYours(_))), "{id:?}");
    }
    assert_eq!(unlock(held(), Some("a"), "root", true), Ok(Outcome::Unlocked(held())));
}

/// Everything that a lock id opens is refused to a user who is not its holder, whatever kind the lock is, and says no more than a wrong id.
#[test]
fn c3_a_lock_id_of_another_user_opens_nothing() {
    let lines = Bytes::from_static(b"x\n");
    let commands = |id: &str, user: &str| -> Vec<Command> {
        let (lock, user) = (id.to_owned(), user.to_owned());
        let write = Write { lock: Some(lock.clone()), by: user.clone(), ..write(6) };
        vec![
            Command::Heartbeat { id: lock.clone(), user: user.clone() },
            Command::AppendJournal { lock: lock.clone(), user: user.clone(), lines: lines.clone() },
            Command::ClearJournal { lock: lock.clone(), user: user.clone() },
            Command::Delete { lock: Some(lock.clone()), user: user.clone(), force: false },
            Command::Write(write.clone()),
            Command::Write(Write { replaces: Replaces::Serial(5), ..write }),
            Command::Unlock { id: Some(lock), user, may_break: false },
        ]
    };
    for held in [lease("a"), tofu("a", "ci")] {
        let head = head(Some(held), Some(5));
        for (theirs, wrong) in commands("a", "eve").into_iter().zip(commands("b", "eve")) {
            let (theirs, wrong) = (decide(&head, &theirs), decide(&head, &wrong));
            let (theirs, wrong) = (theirs.unwrap_err(), wrong.unwrap_err());
            assert_eq!(std::mem::discriminant(&theirs), std::mem::discriminant(&wrong), "{theirs}");
        }
        for ours in commands("a", "ci") {
            assert!(decide(&head, &ours).is_ok(), "{ours:?}");
        }
    }
    // A history is not added to either.
    let former = Write { lock: Some("a".into()), by: "eve".into(), replaces: Replaces::Nothing, ..write(1) };
    assert!(written(&head(Some(lease("a")), None), former.clone()).is_err());
    assert!(written(&head(Some(lease("a")), None), Write { by: "ci".into(), ..former }).is_ok());
}

/// Nobody works on what a crash could take back: only what loses nothing is answered before it is on the disk.
#[test]
fn only_unlocks_and_heartbeats_are_answered_before_they_are_on_the_disk() {
    let (id, user) = ("a".to_owned(), "ci".to_owned());
    let lines = Bytes::from_static(b"x\n");
    let durable = [
        Command::Lock { lock: tofu("a", "ci"), lapsed: None },
        Command::Write(write(6)),
        Command::Delete { lock: None, user: user.clone(), force: false },
        Command::AppendJournal { lock: id.clone(), user: user.clone(), lines },
        Command::ClearJournal { lock: id.clone(), user: user.clone() },
    ];
    assert!(durable.iter().all(Command::is_durable));
    assert!(!Command::Heartbeat { id: id.clone(), user: user.clone() }.is_durable());
    assert!(!Command::Unlock { id: Some(id), user, may_break: false }.is_durable());
}

#[test]
fn a_heartbeat_moves_the_lease_on() {
    let held = Lock { beat: 4, ..lease("a") };
    let command = Command::Heartbeat { id: "a".into(), user: "ci".into() };
    let decision = decide(&head(Some(held.clone()), None), &command).unwrap();
    let renewed = Lock { beat: 5, ..held };
    assert_eq!(decision.outcome, Outcome::Renewed(renewed.clone()));
    assert!(matches!(decision.effect, Some(Effect::SetLock(Some(lock))) if lock == renewed));
}

/// The same id under another kind is another lock: whoever holds one may never have asked for the other.
#[test]
fn a_lock_of_another_kind_is_not_the_same_lock() {
    for (held, wanted) in [(tofu("a", "ci"), lease("a")), (lease("a"), tofu("a", "ci"))] {
        let decision = decide(&head(Some(held), None), &Command::Lock { lock: wanted, lapsed: None });
        assert!(matches!(decision, Err(Refusal::Held(_))));
    }
}

#[test]
fn a_forced_delete_asks_for_no_lock() {
    let delete = |serial, force| {
        let command = Command::Delete { lock: None, user: "ci".into(), force };
        decide(&head(Some(tofu("a", "eve")), serial), &command).map(|decision| decision.outcome)
    };
    assert!(matches!(delete(Some(5), false), Err(Refusal::Held(_))));
    assert_eq!(delete(Some(5), true), Ok(Outcome::Deleted(true)));
    assert_eq!(delete(None, true), Ok(Outcome::Deleted(false)));
}

/// Only the same bytes with the same serial are a request that was sent again.
#[test]
fn a_write_is_the_same_only_as_a_whole() {
    let head = head(None, Some(5));
    assert!(matches!(written(&head, write(5)), Ok(Outcome::Unchanged(_))));
    let older = Err(Refusal::Older { found: 5, sent: 5 });
    assert_eq!(written(&head, Write { size: 11, ..write(5) }), older);
    assert_eq!(written(&head, Write { md5: "other".into(), ..write(5) }), older);
    let same_bytes = Write { md5: "md5-5".into(), ..write(6) };
    assert!(matches!(written(&head, same_bytes), Ok(Outcome::Written(v)) if v.serial == Some(6)));
}

#[test]
fn a_state_without_lineage_takes_one() {
    let mut head = head(None, Some(5));
    head.current = head.current.map(|current| Version { lineage: None, ..current });
    assert!(written(&head, write(6)).is_ok());
    assert!(written(&head, Write { lineage: None, ..write(6) }).is_ok());
}

/// What only joins the history never takes the place of a state that is there.
#[test]
fn a_history_is_given_only_to_a_state_that_is_not_there() {
    let former = Write { replaces: Replaces::Nothing, ..write(9) };
    assert_eq!(written(&head(None, Some(5)), former.clone()), Err(Refusal::Moved { expected: 0, found: 5 }));
    let forced = Write { force: true, ..former.clone() };
    assert!(written(&head(None, Some(5)), forced).is_err());
    let decision = decide(&head(None, None), &Command::Write(former)).unwrap();
    assert!(matches!(decision.effect, Some(Effect::PutVersion { current: false, .. })));
}

/// What nobody can read is replaced by what goes on from the last good version, and only under the lock.
#[test]
fn a_version_that_cannot_be_read_is_replaced_by_its_number() {
    let ours = |replaces| Write { replaces, lock: Some("a".into()), md5: "new".into(), ..write(5) };
    let locked = head(Some(lease("a")), Some(5));
    let replaced = written(&locked, ours(Replaces::Unreadable(7)));
    assert!(
        matches!(replaced, Ok(Outcome::Written(v)) if v.version == 8 && v.serial == Some(5) && !v.forced)
    );
    let refused = written(&locked, ours(Replaces::Unreadable(6)));
    assert_eq!(refused, Err(Refusal::Moved { expected: 4, found: 5 }), "another version is there by now");
    assert!(written(&head(Some(lease("a")), None), ours(Replaces::Unreadable(7))).is_err());
    for holder in [None, Some(lease("b"))] {
        let forced = Write { force: true, ..ours(Replaces::Unreadable(7)) };
        assert!(written(&head(holder, Some(5)), forced).is_err());
    }
}
