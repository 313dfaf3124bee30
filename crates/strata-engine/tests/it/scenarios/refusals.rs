//! What a plan refuses: nothing is begun, and the user is told what stands in the way.

use insta::assert_snapshot;
use serde_json::json;

use super::Story;
use crate::world::{Ending, Source, lineage};

#[tokio::test(start_paused = true)]
async fn what_is_protected_is_neither_replaced_nor_destroyed() {
    let mut story = Story::new();
    let source = Source::default().vm("db", 100, json!({})).protect().vm("web", 101, json!({}));
    story.when("a protected VM and another").apply(&source).await;
    let mark = json!(format!("strata: {} s/vm/db vmid=200", lineage()));
    let moved = source.clone().change("vm/db", "vmid", json!(200)).change("vm/db", "mark", mark);
    story.when("another VMID").try_apply(&moved).await;
    let replaced = source.clone().change("vm/db", "arch", json!("aarch64"));
    story.when("another architecture").try_apply(&replaced).await;
    story.when("destroy").try_apply(&Source::default()).await;
    assert_eq!(story.world.pve.ours().len(), 2);
    let free = Source::default().vm("db", 100, json!({})).vm("web", 101, json!({}));
    story.when("the protection is lifted").apply(&free).await;
    let protected_now = moved.clone();
    story.when("protected again and moved at once").try_apply(&protected_now).await;
    story.when("destroy without protection").apply(&Source::default()).await;
    assert_snapshot!(story.text, @r###"
    # a protected VM and another
    plan:
      0 + s/vm/db
      1 + s/vm/web
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100
      create guest 101
      configure guest 101
      switch power of guest 101

    # another VMID
    plan:
      ! s/vm/db: it is protected, and the plan would replace it
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    apply:
      refused s/vm/db: it is protected, and the plan would replace it
    written:

    # another architecture
    plan:
      ! s/vm/db: it is protected, and the plan would replace it
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    apply:
      refused s/vm/db: it is protected, and the plan would replace it
    written:

    # destroy
    plan:
      0 - s/vm/web
      ! s/vm/db: it is protected, and the plan would destroy it
      0 create, 0 update, 0 replace, 1 delete, 0 unchanged
    apply:
      refused s/vm/db: it is protected, and the plan would destroy it
    written:

    # the protection is lifted
    plan:
      0 = record s/vm/db
      0 create, 0 update, 0 replace, 0 delete, 2 unchanged
    apply:
      1 done
    written:

    # protected again and moved at once
    plan:
      ! s/vm/db: it is protected, and the plan would replace it
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    apply:
      refused s/vm/db: it is protected, and the plan would replace it
    written:

    # destroy without protection
    plan:
      0 - s/vm/db
      1 - s/vm/web
      0 create, 0 update, 0 replace, 2 delete, 0 unchanged
    apply:
      2 done
    written:
      stop guest 100
      delete guest 100
      stop guest 101
      delete guest 101
    "###);
}

#[tokio::test(start_paused = true)]
async fn a_disk_never_shrinks() {
    let mut story = Story::new();
    let size = |gib: u64| Source::default().vm("web", 100, json!({"disks": {"scsi0": {"size": gib << 30}}}));
    story.when("a disk of 20 GiB").apply(&size(20)).await;
    story.when("10 GiB").try_apply(&size(10)).await;
    story.when("30 GiB").apply(&size(30)).await;
    story.world.pve.tamper(100, "disks.scsi0.size", json!(40_u64 << 30));
    story.when("somebody else grows it").drift(&size(30)).await.try_apply(&size(30)).await;
    assert_snapshot!(story.text, @r###"
    # a disk of 20 GiB
    plan:
      0 + s/vm/web
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100

    # 10 GiB
    plan:
      ! s/vm/web: `disks.scsi0.size`: it would shrink from 20 GiB to 10 GiB: a disk can only grow
      0 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      refused s/vm/web: `disks.scsi0.size`: it would shrink from 20 GiB to 10 GiB: a disk can only grow
    written:

    # 30 GiB
    plan:
      0 ~ s/vm/web
          disks.scsi0.size: 21474836480 → 32212254720
      0 create, 1 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      configure guest 100

    # somebody else grows it
    drift:
      changed s/vm/web
          disks.scsi0.size: 32212254720 → 42949672960 (drift)
    plan:
      ! s/vm/web: `disks.scsi0.size`: it would shrink from 40 GiB to 30 GiB: a disk can only grow
      0 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      refused s/vm/web: `disks.scsi0.size`: it would shrink from 40 GiB to 30 GiB: a disk can only grow
    written:
    "###);
}

#[tokio::test(start_paused = true)]
async fn what_a_task_works_on_is_left_alone() {
    let mut story = Story::new();
    let source = Source::default().vm("db", 101, json!({})).vm("web", 100, json!({}));
    story.when("two VMs").apply(&source).await;
    story.world.pve.start_task(100, "backup");
    let changed =
        source.clone().change("vm/web", "cpu.cores", json!(4)).change("vm/db", "cpu.cores", json!(4));
    story.when("a backup of one runs").drift(&source).await.apply_around(&changed).await;
    story.when("also if it is to go").apply_around(&changed.clone().without(&["vm/web"])).await;
    let mark = json!(format!("strata: {} s/vm/web vmid=200", lineage()));
    let moved = changed.clone().change("vm/web", "vmid", json!(200)).change("vm/web", "mark", mark);
    story.when("also if it is to get another VMID").apply_around(&moved).await;
    story.world.pve.end_task(100);
    story.when("the backup has ended").apply(&changed).await;
    assert_snapshot!(story.text, @r###"
    # two VMs
    plan:
      0 + s/vm/db
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

    # a backup of one runs
    drift:
      busy s/vm/web: guest 100 is locked (backup)
    plan:
      0 ~ s/vm/db (restart)
          cpu.cores: 2 → 4
      ? s/vm/web: guest 100 is locked (backup)
      0 create, 1 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      configure guest 101
      restart guest 101

    # also if it is to go
    plan:
      ? s/vm/web: guest 100 is locked (backup)
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    apply:
      0 done
    written:

    # also if it is to get another VMID
    plan:
      ? s/vm/web: guest 100 is locked (backup)
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    apply:
      0 done
    written:

    # the backup has ended
    plan:
      0 ~ s/vm/web (restart)
          cpu.cores: 2 → 4
      0 create, 1 update, 0 replace, 0 delete, 1 unchanged
    apply:
      1 done
    written:
      configure guest 100
      restart guest 100
    "###);
}

/// The engine itself refuses to run what a plan says cannot run, whoever asks.
#[tokio::test(start_paused = true)]
async fn a_plan_that_cannot_run_does_not_run() {
    use crate::world::{Process, owner};
    let story = Story::new();
    let source = Source::default().vm("web", 100, json!({})).protect().vm("log", 101, json!({}));
    assert!(story.world.apply(&source).await.succeeded());
    let run = story.world.run(&Process::start());
    let nothing = Source::default().stack();
    let mut locked = run.lock(&nothing, owner()).await.unwrap();
    let plan = locked.plan(&nothing).await.unwrap();
    let error = locked.apply(&plan, &Default::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan cannot run: `s/vm/web`: it is protected, and the plan would destroy it"
    );
    locked.release().await.unwrap();
    // A plan of an older state neither.
    let stack = source.stack();
    let old = run.plan(&stack).await.unwrap();
    let other = source.without(&["vm/log"]);
    assert!(matches!(story.world.apply(&other).await, Ending::Done(_)));
    let mut locked = run.lock(&stack, owner()).await.unwrap();
    let error = locked.apply(&old, &Default::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "the plan cannot run: the state went from serial 1 to 2 since it was made");
}
