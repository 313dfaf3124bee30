//! The order of steps where what the state knows and what the source wants pull in different directions.

use insta::assert_snapshot;
use serde_json::json;

use super::Story;
use crate::world::{Fault, Source, kill_at};

/// Both are replaced, and the dependency between them turns round.
#[tokio::test(start_paused = true)]
async fn a_dependency_that_turns_round() {
    let mut story = Story::new();
    let arch = |arch: &str| json!({"arch": arch});
    let source = Source::default().vm("a", 100, arch("x86_64")).needs(&["vm/b"]).vm("b", 101, arch("x86_64"));
    story.when("a needs b").apply(&source).await;
    let source =
        Source::default().vm("a", 100, arch("aarch64")).vm("b", 101, arch("aarch64")).needs(&["vm/a"]);
    story.when("b needs a").apply(&source).await;
    assert_snapshot!(story.text, @r###"
    # a needs b
    plan:
      0 + s/vm/b
      1 + s/vm/a after [0]
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

    # b needs a
    plan:
      0 - s/vm/a (replacement)
      1 + s/vm/a (replacement) after [0]
          because the processor architecture is fixed at creation
          arch: "x86_64" → "aarch64"
      2 - s/vm/b (replacement) after [0]
      3 + s/vm/b (replacement) after [1, 2]
          because the processor architecture is fixed at creation
          arch: "x86_64" → "aarch64"
      0 create, 0 update, 2 replace, 0 delete, 0 unchanged
    apply:
      4 done
    written:
      stop guest 100
      delete guest 100
      create guest 100
      configure guest 100
      switch power of guest 100
      stop guest 101
      delete guest 101
      create guest 101
      configure guest 101
      switch power of guest 101
    "###);
}

/// What goes should go after its user is brought up to date; the user needs what can only be made when that has gone.
#[tokio::test(start_paused = true)]
async fn a_circle_through_the_past_gives_way() {
    let mut story = Story::new();
    let source = Source::default()
        .vm("u", 100, json!({"arch": "x86_64"}))
        .vm("w", 101, json!({}))
        .needs(&["vm/u"])
        .vm("v", 102, json!({}))
        .needs(&["vm/w"]);
    story.when("v needs w needs u").apply(&source).await;
    let source = Source::default()
        .vm("u", 100, json!({"arch": "aarch64"}))
        .vm("v", 102, json!({"onboot": true}))
        .needs(&["vm/u"]);
    story.when("w goes, u is replaced, v needs u").apply(&source).await;
    assert_snapshot!(story.text, @r###"
    # v needs w needs u
    plan:
      0 + s/vm/u
      1 + s/vm/w after [0]
      2 + s/vm/v after [1]
      3 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      3 done
    written:
      create guest 100
      configure guest 100
      switch power of guest 100
      create guest 101
      configure guest 101
      switch power of guest 101
      create guest 102
      configure guest 102
      switch power of guest 102

    # w goes, u is replaced, v needs u
    plan:
      0 - s/vm/w
      1 - s/vm/u (replacement) after [0]
      2 + s/vm/u (replacement) after [1]
          because the processor architecture is fixed at creation
          arch: "x86_64" → "aarch64"
      3 ~ s/vm/v after [2]
          onboot: none → true
      0 create, 1 update, 1 replace, 1 delete, 0 unchanged
    apply:
      4 done
    written:
      stop guest 101
      delete guest 101
      stop guest 100
      delete guest 100
      create guest 100
      configure guest 100
      switch power of guest 100
      configure guest 102
    "###);
}

/// The state can hold a circle: a run that died in the middle recorded one end of a dependency that turned round.
#[tokio::test(start_paused = true)]
async fn a_circle_in_the_state_can_be_destroyed() {
    let mut story = Story::new();
    let source = Source::default().vm("a", 100, json!({})).vm("b", 101, json!({})).needs(&["vm/a"]);
    story.when("b needs a").apply(&source).await;
    let source = Source::default().vm("a", 100, json!({})).needs(&["vm/b"]).vm("b", 101, json!({}));
    story.world.memory().script(kill_at(1, Fault::KillAfter));
    story.when("a needs b, and the run dies when it has recorded that");
    story.plan(&source).await.run(&source).await;
    story.world.memory().clear_script();
    story.when("destroy").apply(&Source::default()).await;
    assert_snapshot!(story.text, @r###"
    # b needs a
    plan:
      0 + s/vm/a
      1 + s/vm/b after [0]
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

    # a needs b, and the run dies when it has recorded that
    plan:
      0 = record s/vm/a
      1 = record s/vm/b
      0 create, 0 update, 0 replace, 0 delete, 2 unchanged
    apply:
      killed
    written:

    # destroy
    plan:
      0 - s/vm/a
      1 - s/vm/b after [0]
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
async fn a_source_that_goes_round_in_circles_is_refused() {
    let story = Story::new();
    let source =
        Source::default().vm("a", 100, json!({})).needs(&["vm/b"]).vm("b", 101, json!({})).needs(&["vm/a"]);
    let error = story.world.plan(&source).await.unwrap_err();
    assert!(error.to_string().contains("needs a step that does not come before it"), "{error}");
}
