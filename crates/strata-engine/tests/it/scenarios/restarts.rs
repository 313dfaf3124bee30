//! When a change needs a restart, and who decides about it.

use insta::assert_snapshot;
use serde_json::json;
use strata_resource::RestartPolicy;

use super::Story;
use crate::world::Source;

#[tokio::test(start_paused = true)]
async fn a_restart_is_forecast_where_it_is_needed() {
    let mut story = Story::new();
    let policies = |cores: u32| {
        Source::default()
            .vm("a-reboot", 100, json!({"cpu": {"cores": cores}}))
            .vm("b-ignore", 101, json!({"cpu": {"cores": cores}}))
            .on_change(RestartPolicy::Ignore)
            .vm("c-stopped", 102, json!({"cpu": {"cores": cores}, "power": "stopped"}))
            .vm("d-stops", 103, json!({"cpu": {"cores": cores}}))
            .vm("e-in-place", 104, json!({}))
    };
    story.when("five guests").apply(&policies(2)).await;
    let source = policies(4).change("vm/d-stops", "power", json!("stopped")).change(
        "vm/e-in-place",
        "onboot",
        json!(true),
    );
    story.when("more cores").apply(&source).await;
    assert_snapshot!(story.text, @r###"
    # five guests
    plan:
      0 + s/vm/a-reboot
      1 + s/vm/b-ignore
      2 + s/vm/c-stopped
      3 + s/vm/d-stops
      4 + s/vm/e-in-place
      5 create, 0 update, 0 replace, 0 delete, 0 unchanged
    apply:
      5 done
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
      create guest 103
      configure guest 103
      switch power of guest 103
      create guest 104
      configure guest 104
      switch power of guest 104

    # more cores
    plan:
      0 ~ s/vm/a-reboot (restart)
          cpu.cores: 2 → 4
      1 ~ s/vm/b-ignore (stays pending)
          cpu.cores: 2 → 4
      2 ~ s/vm/c-stopped
          cpu.cores: 2 → 4
      3 ~ s/vm/d-stops
          cpu.cores: 2 → 4
          power: "running" → "stopped"
      4 ~ s/vm/e-in-place
          onboot: none → true
      0 create, 5 update, 0 replace, 0 delete, 0 unchanged
    apply:
      5 done
    written:
      configure guest 100
      restart guest 100
      configure guest 101
      configure guest 102
      configure guest 103
      switch power of guest 103
      configure guest 104
    "###);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_restart_is_restarted_once_the_policy_says_so() {
    let mut story = Story::new();
    let source = |cores: u32, policy| {
        Source::default().vm("web", 100, json!({"cpu": {"cores": cores}})).on_change(policy)
    };
    story.when("a guest").apply(&source(2, RestartPolicy::Ignore)).await;
    story.when("more cores, later").apply(&source(4, RestartPolicy::Ignore)).await;
    story.when("now").apply(&source(4, RestartPolicy::Reboot)).await;
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

    # more cores, later
    plan:
      0 ~ s/vm/web (stays pending)
          cpu.cores: 2 → 4
      0 create, 1 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      configure guest 100

    # now
    plan:
      0 ~ s/vm/web (restart)
          because it waits for a restart to take up: cpu.cores
      0 create, 1 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      restart guest 100
    "###);
}

#[tokio::test(start_paused = true)]
async fn new_cloud_init_data_makes_the_guest_anew_if_asked_to() {
    let mut story = Story::new();
    let source = |password: &str| {
        Source::default().vm("web", 100, json!({})).password(password).on_change(RestartPolicy::Recreate)
    };
    story.when("a guest").apply(&source("one")).await;
    story.when("another password").apply(&source("two")).await;
    let more = source("two").change("vm/web", "cpu.cores", json!(4));
    story.when("more cores are no reason").apply(&more).await;
    assert!(!story.text.contains("\"one\"") && !story.text.contains("\"two\""), "{}", story.text);
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

    # another password
    plan:
      0 - s/vm/web (replacement)
      1 + s/vm/web (replacement) after [0]
          because its cloud-init data changed, and `onChange` is `recreate`
          cloudinit.password: (secret) → (secret)
      0 create, 0 update, 1 replace, 0 delete, 0 unchanged
    apply:
      2 done
    written:
      stop guest 100
      delete guest 100
      create guest 100
      configure guest 100
      switch power of guest 100

    # more cores are no reason
    plan:
      0 ~ s/vm/web (restart)
          cpu.cores: 2 → 4
      0 create, 1 update, 0 replace, 0 delete, 0 unchanged
    apply:
      1 done
    written:
      configure guest 100
      restart guest 100
    "###);
}
