use serde_json::json;

use super::*;

fn disk(import: &str) -> Json {
    json!({"vmid": 9, "disks": {"scsi0": {"storage": "a", "size": 1, "import": import}}})
}

fn template(recorded: &str, wanted: &str) -> Vec<String> {
    let mut table = Table::new();
    table.wants("template/base", disk(wanted), &[]).knows("template/base", disk(recorded), &[]);
    let live = json!({"vmid": 9, "disks": {"scsi0": {"storage": "a", "size": 1}}});
    table.sees("template/base", seen(live));
    steps(&table.plan())
}

#[test]
fn a_template_is_recreated_when_its_image_is_another_one() {
    let recreated = ["create template/base", "delete template/base"];
    assert_eq!(template("local:import/debian-12.qcow2", "local:import/debian-13.qcow2"), recreated);
    let same = template("local:import/debian-12.qcow2", "local:import/debian-12.qcow2");
    assert_eq!(same, [""; 0]);
    let elsewhere = template("local:import/debian-12.qcow2", "other:import/debian-12.qcow2");
    assert!(
        !elsewhere.iter().any(|step| step.starts_with("delete")),
        "the storage does not say what an image is"
    );
}

/// An image whose name the source chose, at what was downloaded before and what is asked for now.
fn image(recorded: Json, wanted: Json) -> Plan {
    let with = |fields: Json| {
        let mut spec = json!({"node": "pve1", "volume": "local:import/debian.qcow2"});
        for (key, value) in fields.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        spec
    };
    let mut table = Table::new();
    table.wants("image/debian", with(wanted), &[]).knows("image/debian", with(recorded), &[]);
    table.sees("image/debian", seen(json!({"node": "pve1", "volume": "local:import/debian.qcow2"})));
    table.wants("template/base", disk("local:import/debian.qcow2"), &["image/debian"]);
    table.knows("template/base", disk("local:import/debian.qcow2"), &["image/debian"]);
    table.sees("template/base", seen(json!({"vmid": 9, "disks": {"scsi0": {"storage": "a", "size": 1}}})));
    for (name, vmid, import) in
        [("web", 1, "local:import/debian.qcow2"), ("db", 2, "local:import/other.qcow2")]
    {
        let spec = json!({"vmid": vmid, "disks": {"scsi0": {"storage": "a", "size": 1, "import": import}}});
        let needs: &[&str] = &["image/debian"];
        table.wants(&format!("vm/{name}"), spec.clone(), needs).knows(&format!("vm/{name}"), spec, needs);
        table.sees(
            &format!("vm/{name}"),
            seen(json!({"vmid": vmid, "disks": {"scsi0": {"storage": "a", "size": 1}}})),
        );
    }
    table.plan()
}

#[test]
fn another_image_under_the_same_name_is_told_by_its_checksum_or_else_by_its_url() {
    let replaced =
        ["create image/debian", "create template/base", "delete image/debian", "delete template/base"];
    let (a, b) = (json!({"checksum": "sha256:a", "url": "u1"}), json!({"checksum": "sha256:b", "url": "u1"}));
    let plan = image(a.clone(), b);
    assert_eq!(steps(&plan), replaced, "a template is made again with its image");
    let reasons = &step(&plan, StepAction::Create, "image/debian").reasons;
    assert!(reasons.iter().any(|one| one == "another image takes the name of the former one"), "{reasons:?}");
    // Guests stay as they are, and only those that came from it are named.
    assert!(reasons.iter().any(|one| one.contains("`s/vm/web` was made from the former one")), "{reasons:?}");
    assert!(!reasons.iter().any(|one| one.contains("s/vm/db")), "{reasons:?}");
    let moved = json!({"checksum": "sha256:a", "url": "u2"});
    assert!(!steps(&image(a, moved)).iter().any(|one| one.starts_with("delete")), "the checksum decides");
    assert_eq!(steps(&image(json!({"url": "u1"}), json!({"url": "u2"}))), replaced);
    let checked = steps(&image(json!({"url": "u1"}), json!({"url": "u1", "checksum": "sha256:a"})));
    assert!(!checked.iter().any(|one| one.starts_with("delete")), "without two of them the URL decides");
}

/// A record names what the object came from, and not what the source would make it from today.
#[test]
fn a_guest_keeps_the_source_that_it_was_made_from() {
    let with = |clone: &str, import: &str, notes: &str| {
        json!({"vmid": 1, "clone": clone, "notes": notes,
            "disks": {"scsi0": {"storage": "a", "size": 1, "import": import}}})
    };
    let live = || seen(json!({"vmid": 1, "notes": "old", "disks": {"scsi0": {"storage": "a", "size": 1}}}));
    let becomes = |recorded: Option<Json>| {
        let mut table = Table::new();
        table.wants("vm/web", with("new", "local:import/new.qcow2", "new"), &[]).sees("vm/web", live());
        if let Some(recorded) = recorded {
            table.knows("vm/web", recorded, &[]);
        }
        let plan = table.plan();
        let record = plan.steps.last().and_then(|step| step.becomes.clone());
        serde_json::to_value(record.map(|record| record.spec)).unwrap_or_default()
    };
    let kept = becomes(Some(with("old", "local:import/old.qcow2", "old")));
    assert_eq!(
        (&kept["clone"], &kept["disks"]["scsi0"]["import"]),
        (&json!("old"), &json!("local:import/old.qcow2"))
    );
    // It was made from nothing that the state knows: then nothing is said.
    let bare = json!({"vmid": 1, "notes": "old", "disks": {"scsi0": {"storage": "a", "size": 1}}});
    for unknown in [becomes(Some(bare)), becomes(None)] {
        assert_eq!((&unknown["clone"], &unknown["disks"]["scsi0"]["import"]), (&Json::Null, &Json::Null));
    }
    // The source does not say it any more: the record does not either.
    let mut table = Table::new();
    table.wants(
        "vm/web",
        json!({"vmid": 1, "disks": {"scsi0": {"storage": "a", "size": 1}}, "notes": "new"}),
        &[],
    );
    table.knows("vm/web", with("old", "local:import/old.qcow2", "old"), &[]).sees("vm/web", live());
    let record = table.plan().steps.last().and_then(|step| step.becomes.clone());
    let stored = serde_json::to_value(record.map(|record| record.spec)).unwrap_or_default();
    assert_eq!((&stored["clone"], &stored["disks"]["scsi0"]["import"]), (&Json::Null, &Json::Null));
    // A disk that comes now is made from what the source says.
    let added =
        becomes(Some(json!({"vmid": 1, "notes": "old", "disks": {"scsi1": {"storage": "a", "size": 1}}})));
    assert_eq!(added["disks"]["scsi0"]["import"], "local:import/new.qcow2");
}

/// Another file is another image; the same file on another storage is the same one, and no guest has to be named for it.
#[test]
fn guests_are_named_only_where_their_image_becomes_another_one() {
    let reasons = |former: &str| {
        let new = "local:import/debian-13.qcow2";
        let mut table = Table::new();
        table.wants("image/debian", json!({"node": "pve1", "storage": "local", "volume": new}), &[]);
        let recorded = json!({"node": "pve1", "storage": former.split(':').next(), "volume": former});
        table.knows("image/debian", recorded.clone(), &[]).sees("image/debian", Sighting::Absent);
        table.live.former.insert(address("image/debian"), seen(recorded));
        for (name, vmid, known) in [("web", 1, true), ("new", 2, false)] {
            let spec = json!({"vmid": vmid, "disks": {"scsi0": {"storage": "a", "size": 1, "import": new}}});
            table.wants(&format!("vm/{name}"), spec.clone(), &["image/debian"]);
            if known {
                table.knows(&format!("vm/{name}"), spec, &["image/debian"]);
                let live = json!({"vmid": vmid, "disks": {"scsi0": {"storage": "a", "size": 1}}});
                table.sees(&format!("vm/{name}"), seen(live));
            }
        }
        let spec = json!({"vmid": 3, "disks": {"scsi0": {"storage": "a", "size": 1, "import": new}}});
        table.wants("vm/apart", spec.clone(), &[]).knows("vm/apart", spec, &[]);
        table.sees("vm/apart", seen(json!({"vmid": 3, "disks": {"scsi0": {"storage": "a", "size": 1}}})));
        let plan = table.plan();
        let reasons = &step(&plan, StepAction::Create, "image/debian").reasons;
        reasons.iter().filter(|reason| reason.contains("was made from")).cloned().collect::<Vec<_>>()
    };
    let web = "`s/vm/web` was made from the former one and stays as it is";
    assert_eq!(reasons("local:import/debian-12.qcow2"), [web]);
    assert_eq!(reasons("nas:import/debian-13.qcow2"), [""; 0]);
}

/// What stays as it is between two others does not hide that the upper one needs the lower one.
#[test]
fn a_guest_waits_for_the_image_below_a_template_that_stays() {
    let mut table = Table::new();
    table
        .wants("image/debian", json!({"volume": "local:import/a.qcow2"}), &[])
        .sees("image/debian", Sighting::Absent);
    table
        .wants("template/base", json!({"vmid": 9}), &["image/debian"])
        .sees("template/base", seen(json!({"vmid": 9})));
    table.knows("template/base", json!({"vmid": 9}), &["image/debian"]);
    table.wants("vm/web", json!({"vmid": 1}), &["template/base"]).sees("vm/web", Sighting::Absent);
    let plan = table.plan();
    let needs = &step(&plan, StepAction::Create, "vm/web").needs;
    let names: Vec<&str> = needs.iter().map(|index| plan.steps[*index].address.name()).collect();
    assert_eq!(names, ["debian"]);
}
