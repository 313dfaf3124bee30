//! What has to be true after every step of a life.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strata_testkit::TestSim;

use super::Life;
use crate::kill::assert_same;
use crate::world::{PASSWORD, World};

/// What makes two datacenters of the same source differ: identities that somebody drew, and names that were derived when an object was made.
fn without_identities(export: &Value, ignored: &[u64], hashed: &BTreeMap<u64, String>) -> Value {
    let mut guests = export["guests"].as_array().unwrap().clone();
    for guest in &mut guests {
        let vmid = guest["vmid"].as_u64().unwrap();
        let left_to_others = ignored.contains(&vmid);
        let config = guest["config"].as_object_mut().unwrap();
        for own in ["smbios1", "vmgenid", "meta", "digest"] {
            config.remove(own);
        }
        if left_to_others {
            config.remove("tags");
        }
        // What Proxmox assumes says the same where it is written.
        config.retain(|key, value| {
            !matches!(
                (key.as_str(), value.as_str()),
                ("ostype", Some("other")) | ("scsihw", Some("lsi")) | ("memory", Some("512"))
            )
        });
        // It is kept as it came when the guest was made with it, and hashed when it was set afterwards.
        if let Some(password) = config.get_mut("cipassword")
            && password.as_str() == hashed.get(&vmid).map(String::as_str)
        {
            *password = json!(PASSWORD);
        }
        for value in config.values_mut() {
            let plain = plain(value.as_str().unwrap_or_default());
            *value = json!(plain);
        }
    }
    guests.sort_by_key(|guest| guest["vmid"].as_u64());
    let mut volumes = export["volumes"].as_array().unwrap().clone();
    for volume in &mut volumes {
        let plain = plain(volume["volid"].as_str().unwrap());
        volume["volid"] = json!(plain);
    }
    volumes.sort_by_key(Value::to_string);
    // How many there are of each shows in what is compared.
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for volume in &volumes {
        *counted
            .entry(format!("{}, {} on {}", volume["volid"], volume["size"], volume["node"]))
            .or_default() += 1;
    }
    json!({"guests": guests, "volumes": counted})
}

/// What each guest's password is kept as once it is set on a guest that is there.
fn hashed_passwords(fresh: &World) -> BTreeMap<u64, String> {
    let with_password = |export: &Value| -> Vec<(u64, Value)> {
        let guests = export["guests"].as_array().unwrap().iter();
        let with = guests.filter(|guest| guest["config"]["cipassword"].is_string());
        with.map(|guest| (guest["vmid"].as_u64().unwrap(), guest.clone())).collect()
    };
    for (vmid, guest) in with_password(&fresh.sim.export()) {
        let path = format!("/nodes/{}/qemu/{vmid}/config", guest["node"].as_str().unwrap());
        let set = json!({"method": "PUT", "path": path, "params": {"cipassword": PASSWORD}});
        assert_eq!(fresh.sim.control().change(&set)["status"], 200);
    }
    let hash = |guest: &Value| {
        let text = guest.to_string();
        let found = text.split('"').find(|part| part.starts_with("$5$"));
        found.unwrap_or_else(|| panic!("no password in {text}")).to_owned()
    };
    with_password(&fresh.sim.export()).iter().map(|(vmid, guest)| (*vmid, hash(guest))).collect()
}

/// Hardware addresses and the lineage in the name of a volume are those of the address that an object was made under.
fn plain(text: &str) -> String {
    let mut plain = text.trim_end().to_owned();
    for (start, length) in [("BC:24:11:", 8), ("strata-", 12)] {
        let mut from = 0;
        while let Some(at) = plain[from..].find(start) {
            let begin = from + at + start.len();
            from = begin;
            if plain.get(begin..begin + length).is_some_and(|own| own.chars().all(is_derived)) {
                let rest = &plain[begin + length..];
                // The second one of its name.
                let again = rest.strip_prefix('.').map_or(0, |rest| {
                    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                    if digits > 0 { 1 + digits } else { 0 }
                });
                plain.replace_range(begin..begin + length + again, "(derived)");
            }
        }
    }
    plain
}

fn is_derived(letter: char) -> bool {
    letter.is_ascii_hexdigit() || letter == ':'
}

impl Life {
    /// The live world is the one that a first apply of the same source makes.
    pub(super) fn assert_as_fresh(&self) {
        let fresh = TestSim::start();
        let repo = strata_testkit::Repo::on(&fresh);
        for (path, bytes) in self.world.repo.all_files() {
            let below = path.strip_prefix(self.world.repo.path()).unwrap().to_str().unwrap().to_owned();
            if below.starts_with("stacks/") || below.starts_with("environments/") {
                repo.write(&below, std::str::from_utf8(&bytes).unwrap());
            }
        }
        let fresh = World { sim: fresh, repo };
        fresh.stranger(200);
        let applied = fresh.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{}\na first apply: {}", self.told, applied.all());
        let (live, first) = (self.world.sim.export(), fresh.sim.export());
        let (ignored, hashed) = (&self.ignored, hashed_passwords(&fresh));
        assert_same(
            &without_identities(&live, ignored, &hashed),
            &without_identities(&first, ignored, &hashed),
            &format!("{}\nnot what a first apply makes", self.told),
        );
    }

    pub(super) fn assert_all_known(&self) {
        let orphans = self.world.strata().run(&["drift", "--orphans"]);
        assert_eq!(orphans.code, 0, "{}\nin no state: {}", self.told, orphans.all());
    }

    /// Who has each hardware address.
    fn hardware_addresses(&self) -> BTreeMap<String, Vec<u64>> {
        let export = self.world.sim.export();
        let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for guest in export["guests"].as_array().unwrap() {
            let net = guest["config"]["net0"].as_str().unwrap_or_default();
            let own = net.split(',').filter_map(|part| Some(part.split_once('=')?.1));
            for address in own.filter(|value| value.len() == 17 && value.matches(':').count() == 5) {
                found.entry(address.to_owned()).or_default().push(guest["vmid"].as_u64().unwrap());
            }
        }
        found
    }

    /// No hardware address is that of two guests.
    pub(super) fn assert_apart(&self) {
        for (address, guests) in self.hardware_addresses() {
            assert_eq!(guests.len(), 1, "{}\n{address} is that of {guests:?}", self.told);
        }
    }

    pub(super) fn foreign(&self) -> Value {
        let export = self.world.sim.export();
        let guests = export["guests"].as_array().unwrap();
        guests.iter().find(|guest| guest["vmid"] == 200).cloned().unwrap_or_default()
    }

    /// Which process each guest runs in.
    pub(super) fn processes(&self) -> BTreeMap<u64, Value> {
        let export = self.world.sim.export();
        let guests = export["guests"].as_array().unwrap().iter();
        let pid = |guest: &Value| {
            let kind = guest["type"].as_str().unwrap();
            let path =
                format!("/nodes/{}/{kind}/{}/status/current", guest["node"].as_str().unwrap(), guest["vmid"]);
            let answer = self.world.sim.control().change(&json!({"method": "GET", "path": path}));
            assert_eq!(answer["status"], 200, "{answer}");
            answer["data"]["pid"].clone()
        };
        guests.map(|guest| (guest["vmid"].as_u64().unwrap(), pid(guest))).collect()
    }

    /// The guests that a plan says will be restarted, started, stopped, replaced, made or removed.
    pub(super) fn named(&self, arguments: &[&str]) -> Vec<u64> {
        let plan: Vec<&str> = ["--json", "plan"].into_iter().chain(arguments.iter().copied()).collect();
        let planned = self.world.strata().run(&plan);
        let events = planned.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let goes_down = |event: &Value| {
            let power = event["changes"]
                .as_array()
                .is_some_and(|changes| changes.iter().any(|one| one["path"][0] == "power"));
            event["restart"] == true || power || event["action"] != "update"
        };
        events
            .filter(|event| event["event"] == "planned" && event["action"] != "moved" && goes_down(event))
            .filter_map(|event| event["vmid"].as_u64())
            .collect()
    }
}
