//! Whose is it: unmanaged objects, copies, notes edited by hand, a lost state.

use insta::assert_snapshot;
use serde_json::json;
use strata_resource::RestartPolicy;

use super::Story;
use crate::world::{Fault, Source, lineage};

#[tokio::test(start_paused = true)]
async fn a_stranger_is_never_touched() {
    let mut story = Story::new();
    story.world.pve.unmanaged(100, json!({"vmid": 100, "name": "theirs", "power": "running"}));
    let before = story.world.pve.export();
    let source = Source::default().vm("web", 100, json!({})).vm("log", 101, json!({}));
    story.when("somebody else's guest has the VMID").try_apply(&source).await;
    assert_eq!(story.world.pve.export(), before, "nothing of the plan was begun");
    assert_snapshot!(story.text, @r###"
    # somebody else's guest has the VMID
    plan:
      0 + s/vm/log
      ! s/vm/web: guest 100 `theirs` is not ours
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      refused s/vm/web: guest 100 `theirs` is not ours
    written:
    "###);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_that_took_over_is_left_alone() {
    let mut story = Story::new();
    let source = Source::default().vm("web", 100, json!({})).vm("log", 101, json!({}));
    story.when("two guests").apply(&source).await;
    story.world.pve.remove_guest(100);
    story.world.pve.unmanaged(100, json!({"vmid": 100, "name": "theirs"}));
    story.when("one is replaced by somebody else's").drift(&source).await.try_apply(&source).await;
    story.when("destroy leaves it").apply(&Source::default()).await;
    assert_eq!(story.world.pve.export()["guests"]["100"]["name"], "theirs");
    assert_snapshot!(story.text, @r###"
    # two guests
    plan:
      0 + s/vm/log
      1 + s/vm/web
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      create guest 101
      configure guest 101
      switch power of guest 101
      create guest 100
      configure guest 100
      switch power of guest 100

    # one is replaced by somebody else's
    drift:
      taken s/vm/web: guest 100 `theirs` is not ours
    plan:
      ! s/vm/web: guest 100 `theirs` is not ours
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    apply:
      refused s/vm/web: guest 100 `theirs` is not ours
    written:

    # destroy leaves it
    plan:
      0 - s/vm/log
      1 = forget s/vm/web
          because its place was taken: guest 100 `theirs` is not ours
      0 create, 0 update, 0 replace, 1 delete, 0 unchanged
    apply:
      2 done
    written:
      stop guest 101
      delete guest 101
    "###);
}

/// It bears our mark, but with another VMID: somebody restored a backup, or cloned our guest.
#[tokio::test(start_paused = true)]
async fn a_copy_of_ours_is_a_stranger() {
    let mut story = Story::new();
    let source = Source::default().vm("web", 100, json!({}));
    story.when("a guest").apply(&source).await;
    story.world.pve.copy_guest(100, 101);
    let more = source.clone().vm("copy", 101, json!({}));
    story.when("its copy has a VMID that is planned").plan(&more).await;
    assert!(!story.world.apply(&more).await.succeeded());
    assert!(story.world.apply(&Source::default()).await.succeeded());
    assert!(story.world.pve.export()["guests"]["101"].is_object(), "the copy is still there");
    assert_snapshot!(story.text, @r###"
    # a guest
    plan:
      0 + s/vm/web
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100

    # its copy has a VMID that is planned
    plan:
      ! s/vm/copy: guest 101 `web` is not ours
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    "###);
}

#[tokio::test(start_paused = true)]
async fn notes_edited_by_hand_are_drift() {
    let mut story = Story::new();
    let source = Source::default().vm("web", 100, json!({}));
    story.when("a guest").apply(&source).await;
    story.world.pve.tamper(100, "mark", json!(null));
    story.when("somebody deletes its mark").drift(&source).await.apply(&source).await;
    assert_snapshot!(story.text, @r###"
    # a guest
    plan:
      0 + s/vm/web
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100

    # somebody deletes its mark
    drift:
      changed s/vm/web
          mark: "strata: LINEAGE s/vm/web vmid=100" → none (drift)
    plan:
      0 ~ s/vm/web
          mark: none → "strata: LINEAGE s/vm/web vmid=100" (drift)
      0 create, 1 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      configure guest 100
    "###);
}

#[tokio::test(start_paused = true)]
async fn a_lost_state_is_found_again_by_the_marks() {
    let mut story = Story::new();
    let source = Source::default()
        .image("debian", "debian-12")
        .vm("web", 100, json!({}))
        .needs(&["image/debian"])
        .vm("db", 101, json!({}))
        .password("hunter2")
        .on_change(RestartPolicy::Recreate);
    story.when("an image and two guests").apply(&source).await;
    story.world.memory().lose_document();
    story.world.pve.tamper(100, "cpu.cores", json!(1));
    let live = story.world.plan(&source).await.unwrap();
    assert!(
        !live.steps.iter().any(|step| step.replacement),
        "what cannot be read back is no reason to recreate"
    );
    story.when("the state file is gone");
    story.plan(&source).await;
    assert!(story.world.apply(&source).await.succeeded());
    story.world.assert_settled(&source, "found").await;
    assert_snapshot!(story.text, @r###"
    # an image and two guests
    plan:
      0 + s/image/debian
      1 + s/vm/db
      2 + s/vm/web after [0]
      3 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      3 done
    written:
      upload `local:iso/SHORT-debian-12.iso`
      create guest 101
      configure guest 101
      switch power of guest 101
      create guest 100
      configure guest 100
      switch power of guest 100

    # the state file is gone
    plan:
      0 = record s/image/debian
      1 ~ s/vm/db (restart)
          because it exists with the ownership mark of this repository, but is not in the state
          cloudinit.password: {"$unknown":true} → (secret)
      2 ~ s/vm/web (restart)
          because it exists with the ownership mark of this repository, but is not in the state
          cpu.cores: 1 → 2
      0 create, 2 update, 0 replace, 0 delete, 1 unchanged
    "###);
}

#[tokio::test(start_paused = true)]
async fn another_vmid_is_another_guest() {
    let mut story = Story::new();
    let source = |vmid: u32| Source::default().vm("web", vmid, json!({}));
    story.when("a guest").apply(&source(100)).await;
    story.when("another VMID").apply(&source(200)).await;
    story.world.pve.remove_guest(200);
    story.when("another one, and the guest is gone").apply(&source(300)).await;
    assert_snapshot!(story.text, @r###"
    # a guest
    plan:
      0 + s/vm/web
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100

    # another VMID
    plan:
      0 - s/vm/web (replacement)
      1 + s/vm/web (replacement) after [0]
          because the VMID is the guest's identity
          mark: "strata: LINEAGE s/vm/web vmid=100" → "strata: LINEAGE s/vm/web vmid=200"
          vmid: 100 → 200
      0 create, 0 update, 1 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      stop guest 100
      delete guest 100
      create guest 200
      configure guest 200
      switch power of guest 200

    # another one, and the guest is gone
    plan:
      0 + s/vm/web
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      create guest 300
      configure guest 300
      switch power of guest 300
    "###);
}

/// The state knows one guest, and the one that the source asks for is there too, ours by its ownership mark.
#[tokio::test(start_paused = true)]
async fn two_guests_of_one_address_become_one() {
    let mut story = Story::new();
    let source = |vmid: u32| Source::default().vm("web", vmid, json!({}));
    story.when("a guest").apply(&source(100)).await;
    let mark = format!("strata: {} s/vm/web vmid=200", lineage());
    story.world.pve.unmanaged(
        200,
        json!({"vmid": 200, "node": "pve1", "name": "web", "cpu": {"cores": 2}, "power": "running", "mark": mark}),
    );
    story.when("the state was rolled back past a change of its VMID");
    story.plan(&source(200)).await;
    assert!(story.world.apply(&source(200)).await.succeeded());
    story.world.assert_settled(&source(200), "one").await;
    assert_snapshot!(story.text, @r###"
    # a guest
    plan:
      0 + s/vm/web
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100

    # the state was rolled back past a change of its VMID
    plan:
      0 = record s/vm/web
      1 - former s/vm/web after [0]
          because another object has taken its place
      0 create, 0 update, 0 replace, 1 delete, 1 unchanged
    "###);
}

/// A guest that took the place of another is replaced before the other could be deleted: the state still knows the other.
#[tokio::test(start_paused = true)]
async fn a_former_guest_outlives_its_successor() {
    let mut story = Story::new();
    let source = |vmid: u32| Source::default().vm("web", vmid, json!({"arch": "x86_64"}));
    story.when("a guest").apply(&source(100)).await;
    let mark = format!("strata: {} s/vm/web vmid=200", lineage());
    story
        .world
        .pve
        .unmanaged(200, json!({"vmid": 200, "node": "pve1", "name": "web", "arch": "x86_64", "mark": mark}));
    story.world.pve.script(|call| if call.what == "delete guest 100" { Fault::Before } else { Fault::None });
    assert!(!story.world.apply(&source(200)).await.succeeded());
    story.world.pve.take_written();
    story
        .world
        .pve
        .script(|call| if call.what == "create guest 200" { Fault::KillBefore } else { Fault::None });
    let replaced = source(200).change("vm/web", "arch", json!("aarch64"));
    story.when("another has taken its place, is replaced, and the run dies half way");
    story.plan(&replaced).await.run(&replaced).await;
    story.world.pve.clear_script();
    story.when("the next run cleans up").apply(&replaced).await;
    assert_snapshot!(story.text, @r###"
    # a guest
    plan:
      0 + s/vm/web
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100

    # another has taken its place, is replaced, and the run dies half way
    plan:
      0 - s/vm/web (replacement)
      1 + s/vm/web (replacement) after [0]
          because the processor architecture is fixed at creation
          arch: "x86_64" → "aarch64"
      2 - former s/vm/web after [1]
          because a replacement left it behind
      0 create, 0 update, 1 replace, 1 delete, 0 unchanged
    apply:
      killed
    written:
      stop guest 200
      delete guest 200
      create guest 200

    # the next run cleans up
    plan:
      0 - s/vm/web (replacement)
      1 + s/vm/web (replacement) after [0]
          because the processor architecture is fixed at creation
          because the VMID is the guest's identity
          arch: "x86_64" → "aarch64"
          mark: "strata: LINEAGE s/vm/web vmid=100" → "strata: LINEAGE s/vm/web vmid=200"
          power: "stopped" → "running" (drift)
          vmid: 100 → 200
      ? create s/vm/web
      0 create, 0 update, 1 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      delete guest 100
      create guest 200
      configure guest 200
      switch power of guest 200
    "###);
}
