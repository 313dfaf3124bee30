//! A remote in memory: guests and volumes, what others do to them, and what may never happen to them.

mod execute;
mod provider;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value as Json, json};
use strata_engine::Observed;
use strata_resource::{Spec, Value};

use super::script::{Call, Fault, Script};
use super::source::lineage;
pub(crate) use provider::FakeProvider;

#[derive(Default)]
pub(crate) struct Remote {
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    guests: BTreeMap<i64, Guest>,
    volumes: BTreeMap<String, Spec>,
    script: Script,
    /// What no engine may ever ask for.
    violations: Vec<String>,
    /// How often a VMID was taken; part of a guest's uuid.
    made: BTreeMap<i64, u32>,
    running: BTreeMap<String, usize>,
    most_at_once: BTreeMap<String, usize>,
    /// Operations that were dropped in the middle.
    cut_off: usize,
    /// Misbehaviour: an answer is left out; tasks of others do not end; a request hangs.
    forgets_an_answer: bool,
    keeps_tasks: bool,
    hangs: bool,
}

#[derive(Clone)]
struct Guest {
    fields: Spec,
    uuid: String,
    /// A task that works on it: until it ends the guest shows nothing but this lock.
    task: Option<String>,
    pending: BTreeSet<String>,
}

impl Remote {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Another remote with the same objects.
    pub(crate) fn fork(&self) -> Self {
        let inner = self.inner();
        let (guests, volumes, made) = (inner.guests.clone(), inner.volumes.clone(), inner.made.clone());
        Self { inner: Mutex::new(Inner { guests, volumes, made, ..Inner::default() }) }
    }

    pub(crate) fn script(&self, decide: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.inner().script.set(decide);
    }

    pub(crate) fn clear_script(&self) {
        self.inner().script.clear();
    }

    pub(crate) fn writes(&self) -> usize {
        self.inner().script.writes
    }

    /// The calls since the last time, those that write only.
    pub(crate) fn take_written(&self) -> Vec<String> {
        let log = std::mem::take(&mut self.inner().script.log);
        log.into_iter().filter(|what| !what.starts_with("look") && !what.starts_with("wait")).collect()
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.inner().violations.clone()
    }

    pub(crate) fn most_at_once(&self) -> BTreeMap<String, usize> {
        self.inner().most_at_once.clone()
    }

    /// How many operations run now.
    pub(crate) fn running(&self) -> usize {
        self.inner().running.get("all").copied().unwrap_or_default()
    }

    /// How many operations were dropped in the middle, instead of coming to an end.
    pub(crate) fn cut_off(&self) -> usize {
        self.inner().cut_off
    }

    pub(crate) fn forget_an_answer(&self, forgets: bool) {
        self.inner().forgets_an_answer = forgets;
    }

    /// Tasks are others', and do not end because we wait.
    pub(crate) fn keep_tasks(&self, keeps: bool) {
        self.inner().keeps_tasks = keeps;
    }

    /// Where the script kills, only that one request never ends.
    pub(crate) fn hang_instead_of_killing(&self, hangs: bool) {
        self.inner().hangs = hangs;
    }

    /// Every live object, without what depends on how often it was made.
    pub(crate) fn export(&self) -> Json {
        let inner = self.inner();
        let guests: BTreeMap<String, Json> = inner
            .guests
            .iter()
            .map(|(vmid, guest)| {
                let mut json = json!(guest.fields);
                if guest.task.is_some() || !guest.pending.is_empty() {
                    json["unfinished"] = json!(guest.pending);
                }
                (vmid.to_string(), json)
            })
            .collect();
        json!({"guests": guests, "volumes": inner.volumes})
    }

    /// What is there and ours: VMIDs by their mark, volumes by their name.
    pub(crate) fn ours(&self) -> Vec<String> {
        let inner = self.inner();
        let marked = |guest: &Guest| {
            let mark = guest.fields.get("mark").and_then(Value::as_text);
            mark.is_some_and(|mark| mark.contains(lineage().as_str()))
        };
        let guests = inner.guests.iter().filter(|(_, guest)| marked(guest)).map(|(vmid, _)| vmid.to_string());
        let volumes = inner.volumes.keys().filter(|volid| volid.contains(lineage().short())).cloned();
        guests.chain(volumes).collect()
    }

    /// Somebody else makes a guest.
    pub(crate) fn unmanaged(&self, vmid: i64, fields: Json) {
        let fields = serde_json::from_value(fields).unwrap();
        let uuid = format!("stranger-{vmid}");
        self.inner().guests.insert(vmid, Guest { fields, uuid, task: None, pending: BTreeSet::new() });
    }

    /// Somebody else's volume.
    pub(crate) fn foreign_volume(&self, volid: &str) {
        let fields = [("volume".to_owned(), Value::text(volid))].into();
        self.inner().volumes.insert(volid.to_owned(), fields);
    }

    /// Somebody else changes a guest of ours.
    pub(crate) fn tamper(&self, vmid: i64, field: &str, value: Json) {
        let value = (!value.is_null()).then(|| serde_json::from_value(value).unwrap());
        set(&mut self.inner().guests.get_mut(&vmid).unwrap().fields, field, value);
    }

    pub(crate) fn remove_guest(&self, vmid: i64) {
        self.inner().guests.remove(&vmid).unwrap();
    }

    pub(crate) fn remove_volume(&self, volid: &str) {
        self.inner().volumes.remove(volid).unwrap();
    }

    /// A volume is seen from elsewhere.
    pub(crate) fn set_volume_field(&self, volid: &str, field: &str, value: Json) {
        let value = serde_json::from_value(value).unwrap();
        set(self.inner().volumes.get_mut(volid).unwrap(), field, Some(value));
    }

    /// A task works on a guest, for as long as nobody waits for it.
    pub(crate) fn start_task(&self, vmid: i64, task: &str) {
        self.inner().guests.get_mut(&vmid).unwrap().task = Some(task.to_owned());
    }

    pub(crate) fn end_task(&self, vmid: i64) {
        self.inner().guests.get_mut(&vmid).unwrap().task = None;
    }

    /// A backup is restored under another VMID, mark and all.
    pub(crate) fn copy_guest(&self, vmid: i64, to: i64) {
        let mut inner = self.inner();
        let mut copy = inner.guests[&vmid].clone();
        copy.fields.insert("vmid".into(), Value::Int(to));
        copy.uuid = format!("copy-{to}");
        inner.guests.insert(to, copy);
    }
}

impl Inner {
    fn observed_guest(&self, guest: &Guest) -> Observed {
        let mut spec = guest.fields.clone();
        // What the remote never gives back.
        if let Some(Value::Map(cloudinit)) = spec.get_mut("cloudinit") {
            cloudinit.remove("password");
        }
        let address = guest.fields["vmid"].as_int().unwrap_or_default();
        let facts = json!({"uuid": guest.uuid, "ip": format!("192.0.2.{}", address % 250)});
        let digest = digest(&(json!(guest.fields), &guest.uuid, &guest.pending));
        Observed {
            spec,
            facts: serde_json::from_value(facts).unwrap(),
            digest,
            pending: guest.pending.iter().cloned().collect(),
            running: None,
            evidence: Default::default(),
        }
    }

    fn observed_volume(&self, fields: &Spec) -> Observed {
        let facts = serde_json::from_value(json!({"size": 1024})).unwrap();
        Observed {
            spec: fields.clone(),
            facts,
            digest: digest(&json!(fields)),
            pending: Vec::new(),
            running: None,
            evidence: Default::default(),
        }
    }

    /// The guests that have a volume in a drive.
    fn users_of(&self, volid: &str) -> Vec<i64> {
        let uses = |guest: &Guest| {
            let drives = guest.fields.get("cdroms").and_then(Value::as_map);
            drives.into_iter().flat_map(|drives| drives.values()).any(|drive| {
                drive.as_map().and_then(|drive| drive.get("volume")).and_then(Value::as_text) == Some(volid)
            })
        };
        self.guests.iter().filter(|(_, guest)| uses(guest)).map(|(vmid, _)| *vmid).collect()
    }
}

fn digest(content: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Puts a value at a dotted path; none takes it away.
fn set(fields: &mut Spec, path: &str, value: Option<Value>) {
    match path.split_once('.') {
        Some((key, rest)) => {
            let inner = fields.entry(key.to_owned()).or_insert_with(|| Value::Map(Spec::new()));
            if let Value::Map(inner) = inner {
                set(inner, rest, value);
            }
        }
        None => {
            match value {
                Some(value) => fields.insert(path.to_owned(), value),
                None => fields.remove(path),
            };
        }
    }
}
