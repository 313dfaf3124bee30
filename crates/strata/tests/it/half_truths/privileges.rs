//! One privilege of the computed role is missing on one object. Whatever is then asked for, nothing is forgotten, made twice or told as
//! done that is not: a command either ends as it would have with the privilege, or it fails.

use serde_json::{Value, json};

use crate::kill::assert_same;
use crate::layer0::{self, DATACENTER, datacenter, without_settings};
use crate::least_privilege::{become_somebody_with, computed, root};
use crate::story::{Layer, edited};
use crate::world::{STACK, World};

/// The objects of a layer, and the families of privileges that mean something there.
const GUESTS: [(&str, &[&str]); 11] = [
    ("/vms/9100", &["VM."]),
    ("/storage/local", &["Datastore."]),
    ("/vms/9000", &["VM."]),
    ("/vms/9200", &["VM."]),
    ("/storage/local-lvm", &["Datastore."]),
    ("/pool/production", &["Pool.", "VM."]),
    ("/vms/9110", &["VM."]),
    ("/vms/9120", &["VM."]),
    ("/storage/tank", &["Datastore."]),
    ("/sdn/zones/localnetwork", &["SDN."]),
    ("/nodes/pve1", &["Sys."]),
];
const OBJECTS: [(&str, &[&str]); 12] = [
    ("/pool/web", &["Pool.", "Permissions."]),
    ("/access/groups/ops", &["User.", "Group.", "Sys.", "Permissions."]),
    ("/storage/media", &["Datastore."]),
    ("/mapping/pci/gpu", &["Mapping."]),
    ("/nodes/pve1", &["Sys."]),
    ("/access/realm/pve", &["Realm.", "User."]),
    ("/access", &["Permissions.", "Sys.", "User.", "Realm."]),
    ("/pool/web/dev", &["Pool."]),
    ("/storage/backup", &["Datastore."]),
    ("/mapping/usb/key", &["Mapping."]),
    ("/nodes/pve2", &["Sys."]),
    ("/vms", &["Permissions."]),
];

struct Missing<'a> {
    path: &'a str,
    privilege: &'a str,
}

/// A world, and a login that can be left without one privilege on one object.
struct Bench {
    world: World,
    layer: Layer,
    all: Vec<String>,
    source: String,
    changed: String,
    /// With nothing of ours, with everything, and with everything changed.
    empty: Value,
    whole: Value,
    whole_changed: Value,
}

impl Bench {
    fn new(layer: Layer) -> Self {
        let (world, source, changed) = match layer {
            Layer::Guests => {
                let changed = edited(
                    STACK,
                    &[
                        ("memory: 4096", "memory: 6144"),
                        ("memory: 256", "memory: 512"),
                        ("size: 20}", "size: 22}"),
                        ("destinationPort: \"443\"", "destinationPort: \"8443\""),
                    ],
                );
                (World::instant(STACK), STACK.to_owned(), changed)
            }
            Layer::Datacenter => (datacenter(DATACENTER), DATACENTER.to_owned(), layer0::changed()),
        };
        let all = computed(&world);
        become_somebody_with(&world, &all);
        root(&world, "POST", "/access/roles", &json!({"roleid": "Less", "privs": all.join(",")}));
        let mut bench = Self {
            world,
            layer,
            all,
            source,
            changed,
            empty: Value::Null,
            whole: Value::Null,
            whole_changed: Value::Null,
        };
        // Name servers and time zones are set once and stay.
        bench.run(&["apply", "--yes"]);
        bench.run(&["destroy", "--yes"]);
        bench.empty = bench.export();
        bench.run(&["apply", "--yes"]);
        bench.whole = bench.export();
        bench.write(&bench.changed.clone());
        bench.run(&["apply", "--yes"]);
        bench.whole_changed = bench.export();
        bench.run(&["destroy", "--yes"]);
        bench.write(&bench.source.clone());
        bench
    }

    fn run(&self, arguments: &[&str]) {
        self.world.strata().run(arguments).ok();
    }

    fn write(&self, source: &str) {
        self.world.repo.write(self.layer.file(), source);
    }

    fn export(&self) -> Value {
        match self.layer {
            Layer::Guests => self.world.export(),
            Layer::Datacenter => without_settings(self.world.export()),
        }
    }

    fn take(&self, missing: &Missing<'_>, taken: bool) {
        let rest = self.all.iter().filter(|privilege| !taken || *privilege != missing.privilege);
        let rest: Vec<&str> = rest.map(String::as_str).collect();
        root(&self.world, "PUT", "/access/roles/Less", &json!({"privs": rest.join(",")}));
        let entry =
            json!({"path": missing.path, "users": "least@pve", "roles": "Less", "delete": u8::from(!taken)});
        root(&self.world, "PUT", "/access/acl", &entry);
    }

    /// Runs a command without the privilege. Where it says that nothing is wrong, the world is as expected.
    fn lacking(&self, missing: &Missing<'_>, arguments: &[&str], expected: &Value) -> String {
        self.take(missing, true);
        let run = self.world.strata().run(arguments);
        self.take(missing, false);
        let what = format!("{} on {}: {arguments:?}\n{}", missing.privilege, missing.path, run.all());
        assert!(!what.contains("panicked"), "{what}");
        if run.code == 0 {
            assert_same(&self.export(), expected, &what);
        } else {
            // Refused by the plan or later, or said to be unknown.
            let unseen = run.stdout.contains("cannot be seen");
            let refused = run.code == 3 && run.stdout.contains("refused: nothing is done");
            assert!(unseen || refused || run.stderr.contains("error"), "{what}");
        }
        what
    }

    fn try_without(&self, missing: &Missing<'_>) {
        let changed = || self.write(&self.changed);
        self.run(&["apply", "--yes"]);
        // Nothing is to be done, and nobody may think otherwise.
        for arguments in [&["plan"][..], &["drift"]] {
            let told = self.lacking(missing, arguments, &self.whole);
            let wrong = ["to create", "to replace", "to destroy", "it is gone", "made again"];
            assert!(!wrong.iter().any(|word| told.contains(word)), "{told}");
        }
        assert_same(&self.export(), &self.whole, "a plan changes nothing");
        changed();
        let mut told = self.lacking(missing, &["apply", "--yes"], &self.whole_changed);
        told += &self.lacking(missing, &["destroy", "--yes"], &self.empty);
        let ended = self.world.strata().run(&["destroy", "--yes"]);
        assert_eq!(ended.code, 0, "{told}\nthen:\n{}", ended.all());
        assert_same(&self.export(), &self.empty, &told);
        // From nothing: what could not be finished is finished later.
        self.write(&self.source);
        let told = self.lacking(missing, &["apply", "--yes"], &self.whole);
        let ended = self.world.strata().run(&["apply", "--yes"]);
        assert_eq!(ended.code, 0, "{told}\nthen:\n{}", ended.all());
        assert_same(&self.export(), &self.whole, &told);
        self.world.assert_settled();
        self.run(&["destroy", "--yes"]);
        assert_same(&self.export(), &self.empty, &told);
    }
}

/// Every pair of an object and a privilege that can mean something there.
fn pairs<'a>(bench: &'a Bench, objects: &[(&'a str, &[&str])]) -> Vec<Missing<'a>> {
    let mut pairs = Vec::new();
    for (path, families) in objects {
        let matching = bench.all.iter().filter(|name| families.iter().any(|family| name.starts_with(family)));
        pairs.extend(matching.map(|privilege| Missing { path, privilege }));
    }
    pairs
}

fn without_each(layer: Layer, objects: &[(&str, &[&str])], step: usize) {
    let bench = Bench::new(layer);
    let pairs = pairs(&bench, objects);
    assert!(pairs.len() > objects.len(), "{}", pairs.len());
    let tried = pairs.iter().step_by(step).inspect(|missing| bench.try_without(missing)).count();
    println!("without a privilege: {tried} of {} pairs", pairs.len());
}

#[test]
fn a_missing_privilege_on_one_object_harms_nothing() {
    without_each(Layer::Guests, &GUESTS, 41);
}

#[test]
fn a_missing_privilege_on_one_object_of_a_datacenter_harms_nothing() {
    without_each(Layer::Datacenter, &OBJECTS, 13);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_missing_privileges() {
    without_each(Layer::Guests, &GUESTS, 1);
}

#[test]
#[ignore = "takes minutes: just fault-test"]
fn fault_all_missing_privileges_of_a_datacenter() {
    without_each(Layer::Datacenter, &OBJECTS, 1);
}
