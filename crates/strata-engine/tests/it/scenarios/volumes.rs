//! Volumes: a change is a new one, made first; the old one goes when nothing uses it any more.

use insta::assert_snapshot;
use serde_json::json;
use strata_engine::Limits;

use super::Story;
use crate::world::{Fault, Source, World, volid};

fn with_cidata(content: &str) -> Source {
    Source::default()
        .cidata("web", content)
        .vm("web", 100, json!({"cdroms": {"ide2": {"volume": volid(content)}}}))
        .needs(&["cidata/web"])
}

#[tokio::test(start_paused = true)]
async fn new_cloud_init_data_is_uploaded_swapped_and_the_old_deleted() {
    let mut story = Story::new();
    story.when("a VM with its cloud-init data").apply(&with_cidata("web-1")).await;
    story.when("other data").apply(&with_cidata("web-2")).await;
    assert_snapshot!(story.text, @r###"
    # a VM with its cloud-init data
    plan:
      0 + s/cidata/web
      1 + s/vm/web after [0]
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      upload `local:iso/SHORT-web-1.iso`
      create guest 100
      configure guest 100
      switch power of guest 100

    # other data
    plan:
      0 + s/cidata/web (replacement)
          because the cloud-init data changed
          volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      1 ~ s/vm/web after [0]
          cdroms.ide2.volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      2 - former s/cidata/web (replacement) after [0, 1]
      0 create, 1 update, 1 replace, 0 delete, 0 unchanged
    apply:
      3 done
    written:
      upload `local:iso/SHORT-web-2.iso`
      configure guest 100
      delete `local:iso/SHORT-web-1.iso`
    "###);
}

#[tokio::test(start_paused = true)]
async fn the_old_volume_stays_while_it_is_used() {
    let mut story = Story::new();
    story.when("a VM with its cloud-init data").apply(&with_cidata("web-1")).await;
    story.world.pve.script(|call| match call.what.as_str() {
        "configure guest 100" => Fault::Before,
        _ => Fault::None,
    });
    story.when("the swap fails").try_apply(&with_cidata("web-2")).await;
    let known = story.world.memory().replayed().document;
    assert_eq!(known.resources[&"s/cidata/web".parse().unwrap()].deposed.len(), 1);
    story.when("it fails again, with yet other data").try_apply(&with_cidata("web-3")).await;
    story.world.pve.clear_script();
    story.when("the next apply swaps and cleans up").apply(&with_cidata("web-3")).await;
    assert_snapshot!(story.text, @r###"
    # a VM with its cloud-init data
    plan:
      0 + s/cidata/web
      1 + s/vm/web after [0]
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      upload `local:iso/SHORT-web-1.iso`
      create guest 100
      configure guest 100
      switch power of guest 100

    # the swap fails
    plan:
      0 + s/cidata/web (replacement)
          because the cloud-init data changed
          volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      1 ~ s/vm/web after [0]
          cdroms.ide2.volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      2 - former s/cidata/web (replacement) after [0, 1]
      0 create, 1 update, 1 replace, 0 delete, 0 unchanged
    apply:
      1 done
      failed s/vm/web: no answer to `configure guest 100`
      skipped s/cidata/web
    written:
      upload `local:iso/SHORT-web-2.iso`
      configure guest 100

    # it fails again, with yet other data
    plan:
      0 + s/cidata/web (replacement)
          because the cloud-init data changed
          volume: "local:iso/SHORT-web-2.iso" → "local:iso/SHORT-web-3.iso"
      1 ~ s/vm/web after [0]
          cdroms.ide2.volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-3.iso"
      2 - former s/cidata/web after [0, 1]
          because a replacement left it behind
      3 - former s/cidata/web (replacement) after [1, 2]
      0 create, 1 update, 1 replace, 1 delete, 0 unchanged
    apply:
      1 done
      failed s/vm/web: no answer to `configure guest 100`
      skipped s/cidata/web
      skipped s/cidata/web
    written:
      upload `local:iso/SHORT-web-3.iso`
      configure guest 100

    # the next apply swaps and cleans up
    plan:
      0 ~ s/vm/web
          cdroms.ide2.volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-3.iso"
      1 - former s/cidata/web after [0]
          because a replacement left it behind
      2 - former s/cidata/web after [0, 1]
          because a replacement left it behind
      0 create, 1 update, 0 replace, 2 delete, 1 unchanged
    apply:
      3 done
    written:
      configure guest 100
      delete `local:iso/SHORT-web-1.iso`
      delete `local:iso/SHORT-web-2.iso`
    "###);
}

/// The former object becomes the wanted one again: it must not be deleted as a left-over.
#[tokio::test(start_paused = true)]
async fn the_source_goes_back_to_the_volume_it_had() {
    let mut story = Story::new();
    story.when("a VM with its cloud-init data").apply(&with_cidata("web-1")).await;
    story.world.pve.script(|call| match call.what.as_str() {
        "configure guest 100" => Fault::Before,
        _ => Fault::None,
    });
    story.when("a swap fails").try_apply(&with_cidata("web-2")).await;
    story.world.pve.clear_script();
    story.when("the source goes back").apply(&with_cidata("web-1")).await;
    assert_snapshot!(story.text, @r###"
    # a VM with its cloud-init data
    plan:
      0 + s/cidata/web
      1 + s/vm/web after [0]
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      upload `local:iso/SHORT-web-1.iso`
      create guest 100
      configure guest 100
      switch power of guest 100

    # a swap fails
    plan:
      0 + s/cidata/web (replacement)
          because the cloud-init data changed
          volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      1 ~ s/vm/web after [0]
          cdroms.ide2.volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      2 - former s/cidata/web (replacement) after [0, 1]
      0 create, 1 update, 1 replace, 0 delete, 0 unchanged
    apply:
      1 done
      failed s/vm/web: no answer to `configure guest 100`
      skipped s/cidata/web
    written:
      upload `local:iso/SHORT-web-2.iso`
      configure guest 100

    # the source goes back
    plan:
      0 = record s/cidata/web
      1 - former s/cidata/web after [0]
          because another object has taken its place
      0 create, 0 update, 0 replace, 1 delete, 2 unchanged
    apply:
      2 done
    written:
      delete `local:iso/SHORT-web-2.iso`
    "###);
}

#[tokio::test(start_paused = true)]
async fn a_former_volume_that_is_gone_is_forgotten() {
    let mut story = Story::new();
    story.when("a VM with its cloud-init data").apply(&with_cidata("web-1")).await;
    story.world.pve.script(|call| match call.what.as_str() {
        what if what.starts_with("delete") => Fault::Before,
        _ => Fault::None,
    });
    story.when("the old volume cannot be deleted").try_apply(&with_cidata("web-2")).await;
    story.world.pve.clear_script();
    story.world.pve.remove_volume(&volid("web-1"));
    story.when("somebody else deletes it").apply(&with_cidata("web-2")).await;
    story.world.pve.script(|call| match call.what.as_str() {
        what if what.starts_with("delete") => Fault::Before,
        _ => Fault::None,
    });
    story.when("again, and then all of it leaves the source").try_apply(&with_cidata("web-3")).await;
    story.world.pve.clear_script();
    story.world.pve.remove_volume(&volid("web-2"));
    story.apply(&Source::default()).await;
    assert_snapshot!(story.text, @r###"
    # a VM with its cloud-init data
    plan:
      0 + s/cidata/web
      1 + s/vm/web after [0]
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      upload `local:iso/SHORT-web-1.iso`
      create guest 100
      configure guest 100
      switch power of guest 100

    # the old volume cannot be deleted
    plan:
      0 + s/cidata/web (replacement)
          because the cloud-init data changed
          volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      1 ~ s/vm/web after [0]
          cdroms.ide2.volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      2 - former s/cidata/web (replacement) after [0, 1]
      0 create, 1 update, 1 replace, 0 delete, 0 unchanged
    apply:
      2 done
      failed s/cidata/web: no answer to `delete `local:iso/SHORT-web-1.iso``
    written:
      upload `local:iso/SHORT-web-2.iso`
      configure guest 100
      delete `local:iso/SHORT-web-1.iso`

    # somebody else deletes it
    plan:
      0 = record s/cidata/web
      0 create, 0 update, 0 replace, 0 delete, 2 unchanged
    apply:
      1 done
    written:

    # again, and then all of it leaves the source
    plan:
      0 + s/cidata/web (replacement)
          because the cloud-init data changed
          volume: "local:iso/SHORT-web-2.iso" → "local:iso/SHORT-web-3.iso"
      1 ~ s/vm/web after [0]
          cdroms.ide2.volume: "local:iso/SHORT-web-2.iso" → "local:iso/SHORT-web-3.iso"
      2 - former s/cidata/web (replacement) after [0, 1]
      0 create, 1 update, 1 replace, 0 delete, 0 unchanged
    apply:
      2 done
      failed s/cidata/web: no answer to `delete `local:iso/SHORT-web-2.iso``
    written:
      upload `local:iso/SHORT-web-3.iso`
      configure guest 100
      delete `local:iso/SHORT-web-2.iso`
    plan:
      0 = record s/cidata/web
          because what a replacement left behind is gone
      1 - s/vm/web
      2 - s/cidata/web after [0, 1]
      0 create, 0 update, 0 replace, 2 delete, 0 unchanged
    apply:
      3 done
    written:
      stop guest 100
      delete guest 100
      delete `local:iso/SHORT-web-3.iso`
    "###);
}

/// The state must know a former volume until it is gone, also when the resource has left the source.
#[tokio::test(start_paused = true)]
async fn a_former_volume_is_deleted_with_its_resource() {
    let mut story = Story::new();
    story.when("a VM with its cloud-init data").apply(&with_cidata("web-1")).await;
    story.world.pve.script(|call| match call.what.as_str() {
        what if what.starts_with("delete") => Fault::Before,
        _ => Fault::None,
    });
    story.when("the old volume cannot be deleted").try_apply(&with_cidata("web-2")).await;
    story.world.pve.clear_script();
    story.when("destroy").apply(&Source::default()).await;
    assert_snapshot!(story.text, @r###"
    # a VM with its cloud-init data
    plan:
      0 + s/cidata/web
      1 + s/vm/web after [0]
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      upload `local:iso/SHORT-web-1.iso`
      create guest 100
      configure guest 100
      switch power of guest 100

    # the old volume cannot be deleted
    plan:
      0 + s/cidata/web (replacement)
          because the cloud-init data changed
          volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      1 ~ s/vm/web after [0]
          cdroms.ide2.volume: "local:iso/SHORT-web-1.iso" → "local:iso/SHORT-web-2.iso"
      2 - former s/cidata/web (replacement) after [0, 1]
      0 create, 1 update, 1 replace, 0 delete, 0 unchanged
    apply:
      2 done
      failed s/cidata/web: no answer to `delete `local:iso/SHORT-web-1.iso``
    written:
      upload `local:iso/SHORT-web-2.iso`
      configure guest 100
      delete `local:iso/SHORT-web-1.iso`

    # destroy
    plan:
      0 - s/vm/web
      1 - former s/cidata/web after [0]
          because a replacement left it behind
      2 - s/cidata/web after [0, 1]
      0 create, 0 update, 0 replace, 3 delete, 0 unchanged
    apply:
      3 done
    written:
      stop guest 100
      delete guest 100
      delete `local:iso/SHORT-web-1.iso`
      delete `local:iso/SHORT-web-2.iso`
    "###);
}

/// Another address for the same volume: the volume stays.
#[tokio::test(start_paused = true)]
async fn a_renamed_image_is_the_same_volume() {
    let mut story = Story::new();
    let source = |name| Source::default().image(name, "debian-12");
    story.when("an image").apply(&source("debian")).await;
    story.when("it gets another name").apply(&source("debian12")).await;
    assert_snapshot!(story.text, @r###"
    # an image
    plan:
      0 + s/image/debian
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      upload `local:iso/SHORT-debian-12.iso`

    # it gets another name
    plan:
      0 = forget s/image/debian
          because the source has the same object under another address
      1 = record s/image/debian12
      0 create, 0 update, 0 replace, 0 delete, 1 unchanged
    apply:
      2 done
    written:
    "###);
}

/// On a shared storage the node only says who downloads.
#[tokio::test(start_paused = true)]
async fn a_shared_volume_does_not_move_with_its_node() {
    let world = World::new();
    let source = Source::default().image("debian", "debian-12").with(json!({"shared": true}));
    assert!(world.apply(&source).await.succeeded());
    world.pve.take_written();
    let mut moved = source.change("image/debian", "node", json!("pve2"));
    // The provider answers for the node that it was asked through.
    world.pve.set_volume_field(&volid("debian-12"), "node", json!("pve2"));
    assert!(world.apply(&moved).await.succeeded());
    assert_eq!(world.pve.take_written(), [] as [String; 0]);
    world.assert_settled(&moved, "moved").await;
    moved = moved.change("image/debian", "shared", json!(false));
    assert!(world.apply(&moved).await.succeeded());
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_moves_to_another_target_leaves_nothing_behind() {
    let mut story = Story::new();
    let source =
        || Source::default().image("debian", "debian-12").vm("web", 100, json!({})).needs(&["image/debian"]);
    story.when("an image and a VM").apply(&source()).await;
    let moved = Source::default()
        .image("debian", "debian-12")
        .on_target("lab")
        .vm("web", 100, json!({}))
        .needs(&["image/debian"])
        .on_target("lab");
    story.when("both move to another target").apply(&moved).await;
    assert_eq!(story.world.pve.ours(), [] as [String; 0]);
    assert_eq!(story.world.lab.ours().len(), 2);
    assert_snapshot!(story.text, @r###"
    # an image and a VM
    plan:
      0 + s/image/debian
      1 + s/vm/web after [0]
      2 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      upload `local:iso/SHORT-debian-12.iso`
      create guest 100
      configure guest 100
      switch power of guest 100

    # both move to another target
    plan:
      0 + s/image/debian (replacement)
          because it moves from target `pve` to `lab`
      1 - s/vm/web (replacement)
      2 + s/vm/web (replacement) after [0, 1]
          because it moves from target `pve` to `lab`
      3 - former s/image/debian (replacement) after [0, 1, 2]
      0 create, 0 update, 2 replace, 0 delete, 0 unchanged
    apply:
      4 done
    written:
      stop guest 100
      delete guest 100
      delete `local:iso/SHORT-debian-12.iso`
      upload `local:iso/SHORT-debian-12.iso`
      create guest 100
      configure guest 100
      switch power of guest 100
    "###);
}

#[tokio::test(start_paused = true)]
async fn steps_of_one_address_never_overlap() {
    // Three generations of one volume at once, at full parallelism.
    let world = World::new();
    assert!(world.apply(&with_cidata("web-1")).await.succeeded());
    world.pve.script(|call| if call.what.starts_with("delete") { Fault::Before } else { Fault::None });
    for content in ["web-2", "web-3", "web-4"] {
        assert!(!world.apply(&with_cidata(content)).await.succeeded());
        world.assert_nothing_lost(content);
    }
    world.pve.clear_script();
    let options = strata_engine::ApplyOptions {
        limits: Limits { total: 64, ..Limits::default() },
        ..Default::default()
    };
    assert!(world.apply_with(&with_cidata("web-5"), &options).await.succeeded());
    world.assert_settled(&with_cidata("web-5"), "cleaned up").await;
}
