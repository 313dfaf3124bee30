//! What happens in a life.

use serde_json::json;

use super::Life;
use super::source::{Entry, SECTIONS};

impl Life {
    /// A key gets another name.
    pub(super) fn renames(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        let from = self.entries[at].address();
        self.entries[at].key = self.fresh_key();
        self.moves(from, at);
    }

    /// A guest goes to another stack, which may be new.
    pub(super) fn moves_between_stacks(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        let from = self.entries[at].address();
        let others = ["web", "data", "shop"].into_iter().filter(|one| *one != self.entries[at].stack);
        self.entries[at].stack = self.dice.one_of(&others.collect::<Vec<_>>()).to_owned();
        self.moves(from, at);
    }

    /// Half of a stack becomes another.
    pub(super) fn splits(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        let stack = self.entries[at].stack.clone();
        let new = format!("split{}", self.next_number());
        let own: Vec<usize> = (0..self.entries.len()).filter(|at| self.entries[*at].stack == stack).collect();
        for at in own.iter().copied().take(own.len().div_ceil(2)) {
            let from = self.entries[at].address();
            self.entries[at].stack.clone_from(&new);
            self.moves(from, at);
        }
    }

    /// A stack with all that it has gets another name.
    pub(super) fn renames_a_stack(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        let (from, to) = (self.entries[at].stack.clone(), format!("named{}", self.next_number()));
        for entry in self.entries.iter_mut().filter(|entry| entry.stack == from) {
            entry.stack.clone_from(&to);
        }
        self.tell(&format!("\n  the stack {from} is {to}"));
        self.moved.push((from, to));
    }

    pub(super) fn removes(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        let gone = self.entries.remove(at);
        self.tell(&format!("\n  {} leaves the source", gone.address()));
    }

    pub(super) fn adds(&mut self) {
        let entry = self.new_entry();
        self.tell(&format!("\n  {} is new", entry.address()));
        self.entries.push(entry);
    }

    /// More memory, which VMs get by a restart.
    pub(super) fn changes(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        let memory = 256 + 64 * self.dice.below(8);
        self.entries[at].set("memory", &memory.to_string());
        self.tell(&format!("\n  {} has {memory} MiB", self.entries[at].address()));
    }

    /// What was tried in another environment is brought here.
    pub(super) fn promotes(&mut self) {
        // An adopted guest says its hardware address, which two environments cannot both have.
        let own_mac = |stack: &str| self.entries.iter().any(|one| one.stack == stack && one.has("mac: "));
        let may = |one: &&Entry| one.section == "vms" && !own_mac(&one.stack);
        let vms: Vec<Entry> = self.entries.iter().filter(may).cloned().collect();
        if vms.is_empty() {
            return self.adds();
        }
        let entry = self.dice.one_of(&vms);
        let cores = 2 + self.dice.below(3);
        // The other environment is beside this one, with names and numbers of its own.
        let mut draft = format!("offsets: {{vmId: 1000}}\nstacks:\n  {}:\n", entry.stack);
        for (section, _) in SECTIONS {
            let own = self.entries.iter().filter(|one| one.stack == entry.stack && one.section == section);
            let own: Vec<&Entry> = own.collect();
            if !own.is_empty() {
                draft.push_str(&format!("    {section}:\n"));
            }
            for one in own {
                let more = if one.key == entry.key { format!(", cores: {cores}") } else { String::new() };
                draft.push_str(&format!("      {0}: {{name: {0}-draft{more}}}\n", one.key));
            }
        }
        self.tell(&format!("\n  {} is promoted with {cores} cores", entry.address()));
        self.write_source();
        self.world.repo.write("environments/draft.yaml", &draft);
        let promoted = self.world.strata().run(&["promote", "draft", "test", &entry.stack, "--yes"]);
        assert_eq!(promoted.code, 0, "{}\n{}", self.told, promoted.all());
        let written = self.world.repo.read("environments/test.yaml");
        assert!(written.contains(&format!("cores: {cores}")), "{}\n{written}", self.told);
        self.world.repo.remove("environments/draft.yaml");
        self.promoted.insert(entry.vmid(), cores);
    }

    /// A guest that somebody made by hand is adopted, by a run that may be killed.
    pub(super) fn adopts(&mut self) {
        let vmid = 9100 + self.next_number();
        let key = self.fresh_key();
        let stack = self.entries.first().map_or("web".to_owned(), |entry| entry.stack.clone());
        let params = json!({"vmid": vmid, "name": key, "memory": 384, "cores": 2, "scsi0": "local-lvm:3", "tags": "old", "onboot": 1,
            "net0": format!("virtio=BC:24:11:AA:{:02X}:01,bridge=vmbr1", vmid % 256), "description": "made by hand"});
        let made = json!({"method": "POST", "path": "/nodes/pve1/qemu", "params": params});
        assert_eq!(self.world.sim.control().change(&made)["status"], 200);
        self.write_source();
        self.tell(&format!("\n  {stack}/vm/{key} is adopted as {vmid}"));
        let wanted = format!("{stack}/vm/{key}={vmid}");
        let arguments = ["adopt", "--yes", &wanted];
        self.killed(&arguments);
        let adopted = self.world.strata().run(&arguments);
        assert_eq!(adopted.code, 0, "{}\n{}", self.told, adopted.all());
        self.read_source();
    }

    /// Somebody changes a guest: it is reverted, accepted, or left to them.
    pub(super) fn drifts(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        self.write_source();
        let (address, vmid) = (self.entries[at].address(), self.entries[at].vmid());
        let answer = self.dice.one_of(&["reverted", "accepted", "ignored"]);
        self.tell(&format!("\n  the tags of {address} drift and are {answer}"));
        if !self.entries[at].has("    tags: ") {
            self.entries[at].set("tags", "[kept]");
        }
        if answer == "ignored" && !self.ignored.contains(&vmid) {
            self.entries[at].set("ignoreChanges", "[{field: tags, reason: others set them}]");
            self.ignored.push(vmid);
        }
        self.converge(&[]);
        let tags = format!("theirs-{}", self.dice.below(100));
        self.world.sim.control().change(&json!({"edit": {"vmid": vmid, "set": {"tags": tags}}}));
        if answer == "accepted" && !self.ignored.contains(&vmid) {
            let arguments = ["drift", "--accept", &address, "--yes"];
            self.killed(&arguments);
            let accepted = self.world.strata().run(&arguments);
            assert_eq!(accepted.code, 0, "{}\n{}", self.told, accepted.all());
            self.read_source();
            assert!(self.entries.iter().any(|one| one.has(&tags)), "{}\n`{tags}` is not written", self.told);
        }
    }

    /// An object is made again because somebody asks for it.
    pub(super) fn replaces(&mut self) {
        let Some(at) = self.any() else { return self.adds() };
        let address = self.entries[at].address();
        self.tell(&format!("\n  {address} is replaced"));
        self.converge(&["--replace", &address]);
    }
}
