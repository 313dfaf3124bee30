//! The life of a guest, from an empty hypervisor to an empty hypervisor.

use insta::assert_snapshot;
use serde_json::json;

use super::Story;
use crate::world::Source;

#[tokio::test(start_paused = true)]
async fn from_nothing_to_nothing() {
    let mut story = Story::new();
    let source = Source::default().vm("web", 100, json!({})).container("log", 101, json!({}));
    story.when("nothing is there yet").apply(&source).await;
    story.when("nothing has changed").apply(&source).await;
    let source = source.change("vm/web", "cpu.cores", json!(4)).change("vm/web", "onboot", json!(true));
    story.when("the source asks for more cores").apply(&source).await;
    story.world.pve.tamper(100, "cpu.cores", json!(16));
    story.when("somebody else changes the cores").drift(&source).await.apply(&source).await;
    let source = source.change("vm/web", "arch", json!("aarch64"));
    story.when("another architecture").apply(&source).await;
    let source = source.without(&["vm/web"]);
    story.when("the VM leaves the source").apply(&source).await;
    story.when("destroy").apply(&Source::default()).await;
    assert_snapshot!(story.text, @r###"
    # nothing is there yet
    plan:
      0 + s/vm/web
      1 + s/container/log
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

    # nothing has changed
    plan:
      0 create, 0 update, 0 replace, 0 delete, 2 unchanged
    apply:
      0 done
    written:

    # the source asks for more cores
    plan:
      0 ~ s/vm/web (restart)
          cpu.cores: 2 → 4
          onboot: none → true
      0 create, 1 update, 0 replace, 0 delete, 1 unchanged
    apply:
      1 done
    written:
      configure guest 100
      restart guest 100

    # somebody else changes the cores
    drift:
      changed s/vm/web
          cpu.cores: 4 → 16 (drift)
    plan:
      0 ~ s/vm/web (restart)
          cpu.cores: 16 → 4 (drift)
      0 create, 1 update, 0 replace, 0 delete, 1 unchanged
    apply:
      1 done
    written:
      configure guest 100
      restart guest 100

    # another architecture
    plan:
      0 - s/vm/web (replacement)
      1 + s/vm/web (replacement) after [0]
          because the processor architecture is fixed at creation
          arch: none → "aarch64"
      0 create, 0 update, 1 replace, 0 delete, 1 unchanged
    apply:
      2 done
    written:
      stop guest 100
      delete guest 100
      create guest 100
      configure guest 100
      switch power of guest 100

    # the VM leaves the source
    plan:
      0 - s/vm/web
      0 create, 0 update, 0 replace, 1 delete, 1 unchanged
    apply:
      1 done
    written:
      stop guest 100
      delete guest 100

    # destroy
    plan:
      0 - s/container/log
      0 create, 0 update, 0 replace, 1 delete, 0 unchanged
    apply:
      1 done
    written:
      stop guest 101
      delete guest 101
    "###);
}

#[tokio::test(start_paused = true)]
async fn a_template_and_its_clones() {
    let mut story = Story::new();
    let clone = json!({"clone": {"template": 9000}});
    let source = Source::default()
        .image("debian", "debian-12")
        .template("base", 9000)
        .needs(&["image/debian"])
        .vm("web-1", 101, clone.clone())
        .needs(&["template/base"])
        .vm("web-2", 102, clone)
        .needs(&["template/base"]);
    story.when("an image, a template and two clones").apply(&source).await;
    let source = source.change("template/base", "cpu.cores", json!(2));
    story.when("the template changes: its clones stay as they are").apply(&source).await;
    let source =
        source.change("template/base", "vmid", json!(9001)).change("vm/web-2", "clone.template", json!(9001));
    let mark = json!(format!("strata: {} s/template/base vmid=9001", crate::world::lineage()));
    let source = source.change("template/base", "mark", mark);
    story.when("the template gets another VMID").apply(&source).await;
    story.when("destroy goes against the dependencies").apply(&Source::default()).await;
    assert_snapshot!(story.text, @r###"
    # an image, a template and two clones
    plan:
      0 + s/image/debian
      1 + s/template/base after [0]
      2 + s/vm/web-1 after [1]
      3 + s/vm/web-2 after [1]
      4 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      4 done
    written:
      upload `local:iso/SHORT-debian-12.iso`
      create guest 9000
      configure guest 9000
      make a template of guest 9000
      create guest 101
      configure guest 101
      switch power of guest 101
      create guest 102
      configure guest 102
      switch power of guest 102

    # the template changes: its clones stay as they are
    plan:
      0 ~ s/template/base
          cpu.cores: 8 → 2
      0 create, 1 update, 0 replace, 0 delete, 3 unchanged
    apply:
      1 done
    written:
      configure guest 9000

    # the template gets another VMID
    plan:
      0 + s/template/base (replacement)
          because the VMID is the guest's identity
          mark: "strata: LINEAGE s/template/base vmid=9000" → "strata: LINEAGE s/template/base vmid=9001"
          vmid: 9000 → 9001
      1 - former s/template/base (replacement) after [0]
      0 create, 0 update, 1 replace, 0 delete, 3 unchanged
    apply:
      2 done
    written:
      create guest 9001
      configure guest 9001
      make a template of guest 9001
      delete guest 9000

    # destroy goes against the dependencies
    plan:
      0 - s/vm/web-1
      1 - s/vm/web-2
      2 - s/template/base after [0, 1]
      3 - s/image/debian after [2]
      0 create, 0 update, 0 replace, 4 delete, 0 unchanged
    apply:
      4 done
    written:
      stop guest 101
      delete guest 101
      stop guest 102
      delete guest 102
      delete guest 9001
      delete `local:iso/SHORT-debian-12.iso`
    "###);
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_what_needs_it_and_nothing_else() {
    use crate::world::Fault;
    let mut story = Story::new();
    let source = Source::default()
        .template("base", 9000)
        .vm("web", 101, json!({"clone": {"template": 9000}}))
        .needs(&["template/base"])
        .container("log", 102, json!({}));
    story.world.pve.script(|call| match call.what.as_str() {
        "configure guest 9000" => Fault::Before,
        _ => Fault::None,
    });
    story.when("the template cannot be configured").try_apply(&source).await;
    story.world.pve.clear_script();
    story.when("the next apply completes it").apply(&source).await;
    assert_snapshot!(story.text, @r###"
    # the template cannot be configured
    plan:
      0 + s/template/base
      1 + s/vm/web after [0]
      2 + s/container/log
      3 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
      failed s/template/base: no answer to `configure guest 9000`
      skipped s/vm/web
    written:
      create guest 9000
      configure guest 9000
      create guest 102
      configure guest 102
      switch power of guest 102

    # the next apply completes it
    plan:
      0 ~ s/template/base
          because an interrupted run left it unfinished
          cpu.cores: none → 8
          template: none → true
      1 + s/vm/web after [0]
      1 create, 1 update, 0 replace, 0 delete, 1 unchanged
    apply:
      2 done
    written:
      configure guest 9000
      make a template of guest 9000
      create guest 101
      configure guest 101
      switch power of guest 101
    "###);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_deleted_is_made_again() {
    let mut story = Story::new();
    let source = Source::default().vm("web", 100, json!({})).container("log", 101, json!({}));
    story.when("two guests").apply(&source).await;
    story.world.pve.remove_guest(100);
    story.world.pve.remove_guest(101);
    let source = source.without(&["container/log"]);
    story.when("both are deleted, and one leaves the source").drift(&source).await.apply(&source).await;
    assert_snapshot!(story.text, @r###"
    # two guests
    plan:
      0 + s/vm/web
      1 + s/container/log
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

    # both are deleted, and one leaves the source
    drift:
      gone s/container/log
      gone s/vm/web
    plan:
      0 + s/vm/web
          because it is gone: somebody else deleted it
      1 = forget s/container/log
          because it is gone already
      1 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100
    "###);
}

/// A field may be another resource's output: it is filled when that one is there, and is no change afterwards.
#[tokio::test(start_paused = true)]
async fn an_output_of_one_is_an_input_of_another() {
    let mut story = Story::new();
    let input = json!({"options": {"server": {"$input": "s/vm/db#ip"}}});
    let source = Source::default().vm("db", 100, json!({})).vm("web", 101, input.clone()).needs(&["vm/db"]);
    story.when("the address of `db` is not known yet").apply(&source).await;
    let live = story.world.pve.export();
    assert_eq!(live["guests"]["101"]["options"]["server"], "192.0.2.100");
    let source = Source::default().vm("db", 100, json!({})).vm("app", 102, input).needs(&["vm/db"]);
    let source = source.change("vm/app", "options.server", json!({"$input": "s/vm/db#port"}));
    story.when("an output that is not there").try_apply(&source).await;
    assert_snapshot!(story.text, @r###"
    # the address of `db` is not known yet
    plan:
      0 + s/vm/db
      1 + s/vm/web after [0]
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

    # an output that is not there
    plan:
      0 + s/vm/app
      1 - s/vm/web
      1 create, 0 update, 0 replace, 1 delete, 1 unchanged
    apply:
      1 done
      failed s/vm/app: it needs `port` of `s/vm/db`, which has none
    written:
      stop guest 101
      delete guest 101
    "###);
}
