//! A saved plan runs as it was reviewed, or not at all.

use serde_json::json;
use sha2::{Digest, Sha256};
use strata_engine::{Plan, PlanFile, StalePlan};

use crate::world::{Fault, Source, World};

const DIGEST: &str = "source-1";

fn source() -> Source {
    Source::default().vm("web", 100, json!({})).vm("log", 101, json!({}))
}

fn changed() -> Source {
    source().change("vm/web", "cpu.cores", json!(4))
}

async fn world() -> World {
    let world = World::new();
    assert!(world.apply(&source()).await.succeeded());
    world
}

/// Saved, written to a file, and read again.
fn saved(plan: Plan) -> PlanFile {
    let mut file = PlanFile::new("0.1.0", Some("c0ffee".into()), Some("dev".into()), false);
    file.push("web", DIGEST, plan);
    PlanFile::parse(&serde_json::to_vec(&file).unwrap()).unwrap()
}

async fn check(world: &World, file: &PlanFile, digest: &str, source: &Source) -> Result<(), StalePlan> {
    file.stacks[0].check(digest, &world.plan(source).await.unwrap())
}

async fn moved(world: &World, file: &PlanFile, source: &Source) -> Vec<String> {
    check(world, file, DIGEST, source).await.unwrap_err().moved
}

#[tokio::test(start_paused = true)]
async fn it_runs_if_nothing_moved() {
    let world = world().await;
    let file = saved(world.plan(&changed()).await.unwrap());
    check(&world, &file, DIGEST, &changed()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_is_refused_after_the_source_changed() {
    let world = world().await;
    let file = saved(world.plan(&changed()).await.unwrap());
    let error = check(&world, &file, "source-2", &changed()).await.unwrap_err();
    assert_eq!(error.to_string(), "the plan of `web` is stale: the source changed");
    // A source that slipped past its digest gives another plan.
    let other = changed().change("vm/log", "onboot", json!(true));
    assert_eq!(moved(&world, &file, &other).await, ["the same source now gives another plan"]);
}

#[tokio::test(start_paused = true)]
async fn it_is_refused_after_the_state_changed() {
    let world = world().await;
    let file = saved(world.plan(&changed()).await.unwrap());
    assert!(world.apply(&source().change("vm/log", "onboot", json!(true))).await.succeeded());
    let moved = moved(&world, &file, &changed()).await;
    assert_eq!(moved[0], "the state went from serial 1 to 2");
}

#[tokio::test(start_paused = true)]
async fn it_is_refused_after_a_live_object_changed() {
    let world = world().await;
    let file = saved(world.plan(&changed()).await.unwrap());
    // Even one that the plan leaves as it is.
    world.pve.tamper(101, "foreign", json!("x"));
    assert_eq!(moved(&world, &file, &changed()).await, ["`s/vm/log` was changed"]);
    world.pve.remove_guest(101);
    assert_eq!(moved(&world, &file, &changed()).await, ["`s/vm/log` is gone"]);
}

#[tokio::test(start_paused = true)]
async fn it_is_refused_if_a_stranger_appeared() {
    let world = World::new();
    let file = saved(world.plan(&source()).await.unwrap());
    world.pve.unmanaged(100, json!({"vmid": 100, "name": "theirs"}));
    assert_eq!(moved(&world, &file, &source()).await, ["`s/vm/web`: guest 100 `theirs` is not ours"]);
}

#[tokio::test(start_paused = true)]
async fn it_is_refused_if_it_is_about_what_an_apply_left_open() {
    let world = world().await;
    let file = saved(world.plan(&changed()).await.unwrap());
    world.pve.script(|call| if call.what.starts_with("configure") { Fault::KillBefore } else { Fault::None });
    world.apply(&changed()).await;
    world.pve.clear_script();
    assert_eq!(moved(&world, &file, &changed()).await, ["an interrupted apply left work open"]);
    // Also once it is recovered: the state is another one.
    world.recover(&changed().stack()).await.unwrap();
    assert_eq!(moved(&world, &file, &changed()).await[0], "the state went from serial 1 to 2");
}

/// The guest that a change of VMID deletes is not the one under the wanted identity; the plan is bound to it too.
#[tokio::test(start_paused = true)]
async fn it_is_bound_to_the_objects_that_it_deletes() {
    let world = world().await;
    let other_vmid = Source::default().vm("web", 200, json!({})).vm("log", 101, json!({}));
    let file = saved(world.plan(&other_vmid).await.unwrap());
    check(&world, &file, DIGEST, &other_vmid).await.unwrap();
    world.pve.tamper(100, "foreign", json!("x"));
    assert_eq!(moved(&world, &file, &other_vmid).await, ["a former object of `s/vm/web` was changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_changed_is_refused() {
    let world = world().await;
    let mut file = PlanFile::new("0.1.0", None, None, false);
    file.push("web", DIGEST, world.plan(&changed()).await.unwrap());
    let text = serde_json::to_string(&file).unwrap();
    for (from, to) in
        [("\"after\":4", "\"after\":64"), ("\"serial\":1", "\"serial\":2"), ("s/vm/log", "s/vm/lag")]
    {
        let tampered = text.replacen(from, to, 1);
        assert_ne!(tampered, text, "{from}");
        assert_eq!(
            PlanFile::parse(tampered.as_bytes()).unwrap_err(),
            "the plan of `web` was changed after it was made",
            "{from}"
        );
    }
    let newer = text.replacen("\"format\":1", "\"format\":2", 1);
    assert_eq!(
        PlanFile::parse(newer.as_bytes()).unwrap_err(),
        "Strata 0.1.0 saved it in format 2, and this one knows 1; plan again"
    );
    for length in [0, 1, text.len() / 2, text.len() - 1] {
        assert!(
            PlanFile::parse(&text.as_bytes()[..length]).unwrap_err().starts_with("it is not a plan file")
        );
    }
    // Whoever also corrects the digest is found out by the plan of now.
    let mut forged: PlanFile = serde_json::from_str(&text).unwrap();
    let mut plan = serde_json::to_value(forged.stacks.remove(0).plan).unwrap();
    plan["steps"][0]["reasons"] = json!(["forged"]);
    forged.push("web", DIGEST, serde_json::from_value(plan).unwrap());
    let forged = PlanFile::parse(&serde_json::to_vec(&forged).unwrap()).unwrap();
    assert_eq!(moved(&world, &forged, &changed()).await, ["the same source now gives another plan"]);
}

/// It is as it was saved: nobody edited it. What this version would write in other words is refused all the same.
#[tokio::test(start_paused = true)]
async fn what_another_version_saved_is_told_as_that() {
    let world = world().await;
    let mut file = PlanFile::new("0.0.9", None, None, false);
    file.push("web", DIGEST, world.plan(&changed()).await.unwrap());
    let saved = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut raw = serde_json::to_value(&file).unwrap();
        edit(&mut raw["stacks"][0]["plan"]);
        let digest = Sha256::digest(serde_json::to_vec(&raw["stacks"][0]["plan"]).unwrap());
        raw["stacks"][0]["plan_digest"] = hex::encode(digest).into();
        PlanFile::parse(&serde_json::to_vec_pretty(&raw).unwrap())
    };
    assert!(saved(&|_| {}).is_ok());
    let told = "another version of Strata saved it (0.0.9), which plans in another way; plan again";
    // A key that there is no more, an action of another name, a step without what it needs now.
    assert_eq!(saved(&|plan| plan["steps"][0]["once"] = json!(true)).unwrap_err(), told);
    assert_eq!(saved(&|plan| plan["steps"][0]["action"] = json!("renew")).unwrap_err(), told);
    let without_target = |plan: &mut serde_json::Value| {
        plan["steps"][0].as_object_mut().unwrap().shift_remove("target");
    };
    assert_eq!(saved(&without_target).unwrap_err(), told);
}

#[tokio::test(start_paused = true)]
async fn a_file_holds_no_secret() {
    let world = World::new();
    let source = Source::default().vm("web", 100, json!({})).password("hunter2");
    let mut file = PlanFile::new("0.1.0", None, None, false);
    file.push("web", DIGEST, world.plan(&source).await.unwrap());
    assert!(!serde_json::to_string(&file).unwrap().contains("hunter2"));
    assert!(world.apply(&source).await.succeeded());
    let document = serde_json::to_string(&world.memory().document().unwrap()).unwrap();
    assert!(!document.contains("hunter2"));
    let events = serde_json::to_string(&*world.events.lock().unwrap()).unwrap();
    assert!(!events.contains("hunter2"));
}

fn driven() -> strata_engine::DrivenPlan {
    strata_engine::DrivenPlan {
        stack: "cloud".into(),
        key: "default/cloud".into(),
        source_digest: "aa".into(),
        position: Some(("lineage".into(), 3)),
        summary: strata_engine::Summary { create: 1, ..Default::default() },
        changes: serde_json::json!({"resources": []}),
        sealed: "c2VhbGVk".into(),
        digest: String::new(),
    }
    .bound()
}

#[test]
fn a_driven_plan_is_bound_too() {
    let mut file = PlanFile::new("0.1.0", None, None, false);
    file.driven.push(driven());
    let text = serde_json::to_string(&file).unwrap();
    let read = PlanFile::parse(text.as_bytes()).unwrap();
    assert_eq!(read.names(), ["cloud"]);
    assert_eq!(read.driven[0], driven());
    for (from, to) in [("c2VhbGVk", "b3RoZXI="), ("\"create\":1", "\"create\":0"), ("lineage", "other")] {
        let tampered = text.replace(from, to);
        assert_ne!(tampered, text);
        assert_eq!(
            PlanFile::parse(tampered.as_bytes()).unwrap_err(),
            "the plan of `cloud` was changed after it was made"
        );
    }
}

#[test]
fn a_driven_plan_names_what_moved() {
    let then = driven();
    let position = |serial| Some(("lineage".to_owned(), serial));
    assert!(then.check("aa", position(3).as_ref(), Vec::new()).is_ok());
    let moved = |source: &str, position: Option<(String, u64)>, more: &[&str]| {
        let more = more.iter().map(|&one| one.to_owned()).collect();
        then.check(source, position.as_ref(), more).unwrap_err().moved
    };
    assert_eq!(moved("bb", position(3), &[]), ["the source changed"]);
    assert_eq!(
        moved("aa", position(4), &["`x` was changed"]),
        ["the state went from serial 3 to 4", "`x` was changed"]
    );
    assert_eq!(moved("aa", None, &[]), ["the state is gone"]);
    assert_eq!(moved("aa", Some(("other".into(), 3)), &[]), ["the state is another"]);
}
