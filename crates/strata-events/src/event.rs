//! Every event, by name. The first sentence of each is its line in docs/json.md.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use strata_diagnostics::{Diagnostic, SourceMap};
use strata_engine::{Drift, PlannedMove, Problem, Step, StepAction, Summary};
use strata_inventory::{Host, Inventory};
use strata_resource::{Address, FieldChange, Layer, Value};
use strata_session::SessionError;
use strata_state::{StateDocument, StateResource, Version, Writer};
use strata_tofu::Held;
use strata_tofu::changes::{Action, ResourceChange};

use crate::parts::{
    Asked, ChangeReason, EtcdHealth, GraphEdge, GraphNode, KubernetesHealth, NodeVersions, Place, Side,
};
use crate::recovered::{FoundObject, LeftOut, Unreadable};

/// What a line is about.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Event<'e> {
    /// The command failed; its last line.
    Error { error: &'e SessionError },
    /// Something in the source is wrong, or worth a look.
    Diagnostic {
        severity: String,
        code: String,
        message: String,
        #[serde(flatten)]
        place: Option<Place>,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
        /// Other places that it is about.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        related: Vec<Place>,
    },
    /// Something that a person should know.
    Note {
        message: &'e str,
        /// The object that it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<&'e str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<&'e str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
    },
    /// Somebody else holds the lock of a state; it is asked for again for so long.
    Waiting { key: &'e str, holder: String, lock: &'e str, seconds: u64 },

    /// A repository was made.
    Initialized { folder: &'e Path, example: &'e str },
    /// Every file is valid.
    Valid { stacks: usize, objects: usize },
    /// What the code of a message means, as Markdown.
    Code { code: &'e str, text: &'e str },
    /// The JSON Schema of a kind of file or document.
    Schema { name: &'e str, schema: Json },
    /// The reference of a kind of file, as Markdown.
    Reference { name: &'e str, markdown: &'e str },
    /// What this program is, and what it works with.
    Version {
        release: &'e str,
        /// Where it was recorded when the program was built.
        #[serde(skip_serializing_if = "Option::is_none")]
        commit: Option<&'e str>,
        features: Vec<&'e str>,
        /// Versions by the name of what they are of.
        supported: BTreeMap<&'e str, String>,
    },
    /// The completions of a shell.
    Completions { shell: String, script: &'e str },

    /// What one step of a plan would do; also one field for each that says where the object is, such as `node` and `vmid`.
    Planned {
        address: String,
        /// `moved`, `create`, `update`, `replace`, `delete`, `delete-former`, `record`, `forget`; of OpenTofu also `import` and `move`.
        action: &'static str,
        /// The address that it had, where it is moved.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<&'e Address>,
        #[serde(flatten)]
        place: BTreeMap<&'static str, &'e Value>,
        /// The guest is restarted.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        restart: bool,
        #[serde(skip_serializing_if = "Side::is_empty")]
        changes: Side<'e>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<&'e str>,
    },
    /// Why a plan, or a part of it, cannot run.
    Problem { problem: &'e Problem },
    /// A stack cannot be planned before something that it needs is applied.
    Deferred { needs: &'e str },
    /// A stack could not be planned, and is left as it is.
    NotPlanned {
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'e SessionError>,
        /// The stack that failed, where that was another one.
        #[serde(skip_serializing_if = "Option::is_none")]
        because: Option<&'e str>,
    },
    /// Nothing of a stack was begun, because one that it needs failed.
    StackLeft { because: &'e str },
    /// The numbers under the plans of all stacks.
    Summary { summary: Summary },
    /// The plans were saved.
    Saved {
        file: &'e Path,
        /// Stacks that are not in it, since they wait for it.
        waiting: &'e [String],
    },
    /// What a saved plan is, as a whole.
    PlanFile {
        file: &'e Path,
        /// The version of Strata that made it.
        strata: &'e str,
        /// The commit of the repository; `-dirty` is appended where files were changed.
        commit: Option<&'e str>,
        destroy: bool,
        stacks: Vec<&'e str>,
        waiting: &'e [String],
    },
    /// What the saved plan of a stack is bound to.
    Bound {
        key: &'e str,
        /// Where the state stood.
        serial: Option<u64>,
        lineage: Option<&'e str>,
        source_digest: &'e str,
        plan_digest: &'e str,
        /// How many live objects it was made from.
        live: usize,
        summary: Summary,
        /// What OpenTofu would do, where it makes the stack.
        #[serde(skip_serializing_if = "Option::is_none")]
        changes: Option<&'e Json>,
    },
    /// A stack that a commit range can change.
    StackChanged {
        /// `added`, `changed`, `removed`.
        change: &'static str,
        reasons: Vec<ChangeReason>,
    },
    /// A commit range, and how much of the source it can change.
    CommitRange {
        /// The commit that it begins after; none where the clone does not have it.
        #[serde(skip_serializing_if = "Option::is_none")]
        base: Option<&'e str>,
        head: &'e str,
        /// How many stacks can change, each environment counted.
        changed: usize,
        stacks: usize,
        /// Why every stack counts as changed, where nobody can say more.
        #[serde(skip_serializing_if = "Option::is_none")]
        unknown: Option<&'e str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        remark: Option<&'e str>,
    },
    /// A change was planned for its review.
    Review {
        /// What is to be approved; none where something stands in the way.
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<&'e str>,
        /// The commit that was planned.
        commit: &'e str,
        summary: Summary,
        /// The sealed plan.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<&'e Path>,
    },
    /// A rule over plans is broken, or cannot be decided.
    RuleBroken {
        rule: &'e str,
        /// `error` or `warning`.
        severity: &'static str,
        /// The address that it is about.
        about: &'e str,
        message: &'e str,
    },
    /// The key of a runner was made.
    RunnerKey {
        /// The private key.
        file: &'e Path,
        /// What goes into `review.runners`.
        public: &'e str,
    },
    /// A version that the source pins, and what it can become.
    Pinned {
        /// `talos`, `kubernetes`, `flux`, `images`, `providers`, `modules`.
        group: &'static str,
        name: &'e str,
        file: &'e str,
        line: usize,
        current: &'e str,
        /// The stacks that it counts for, as `environment/stack`.
        stacks: Vec<&'e str>,
        /// The newest within the same major version or series.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<&'e str>,
        /// The next major version or series.
        #[serde(skip_serializing_if = "Option::is_none")]
        major: Option<&'e str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<&'e str>,
        /// Why nothing is known of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        unknown: Option<&'e str>,
    },
    /// A place that publishes versions did not answer, or not with what it should.
    SourceFailed { url: &'e str, message: String },
    /// A branch of git with newer versions is there.
    Branch { branch: &'e str, commit: &'e str, group: &'static str },
    /// What somebody else changed since the last apply.
    Drift { found: DriftFound<'e> },
    /// An object carries an ownership mark or a name of this repository and is in no state.
    Orphan {
        /// What its ownership mark names; the name of a volume says only which stack it belongs to.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// Of a guest.
        #[serde(skip_serializing_if = "Option::is_none")]
        vmid: Option<i64>,
        object: &'e str,
        target: &'e str,
        message: String,
        hint: String,
    },
    /// Something that could not be looked at: this login may not, or it did not answer.
    Unseen { what: &'e str },
    /// What was found of a stack that its state does not know, and what was left out.
    Recoverable {
        found: Vec<FoundObject>,
        /// Nobody can say whether these are there.
        unknown: Vec<LeftOut<'e>>,
        /// Nothing proves these to be of this repository.
        unproven: Vec<LeftOut<'e>>,
        /// The source asks for these, and they are not there.
        absent: Vec<String>,
        /// Values that no remote gives back: recorded as the source has them.
        unreadable: Vec<Unreadable>,
    },
    /// What was found of a stack is in its state.
    Recorded { objects: usize },
    /// What a plan says of a state that was recovered: without changes nothing is missing.
    Proof { proven: bool, summary: Summary },
    /// The state of a stack that is not in the source any more, and that only OpenTofu can remove.
    RemovedStack { error: &'e SessionError },
    /// The store has a state that is in no stack of the source.
    UnplannedState { key: &'e str },

    /// An output of a stack, as it was last applied.
    Output { name: &'e str, value: &'e Value },
    /// A guest or a machine, as it was last applied.
    Guest {
        #[serde(flatten)]
        host: &'e Host,
    },
    /// Every guest and machine, and their groups.
    Inventory { inventory: &'e Inventory },
    /// What a stack consists of, and what must be there first.
    Graph {
        layer: Layer,
        description: Option<&'e str>,
        nodes: Vec<GraphNode<'e>>,
        edges: Vec<GraphEdge<'e>>,
        /// The folder of the code, where OpenTofu makes the stack: what is in it, only OpenTofu knows.
        #[serde(skip_serializing_if = "Option::is_none")]
        tofu: Option<&'e str>,
    },

    /// A resource in the state.
    Resource { address: &'e Address, resource: &'e StateResource },
    /// A resource in the state of OpenTofu.
    TofuResource {
        address: String,
        #[serde(rename = "type")]
        kind: &'e str,
        id: Option<&'e str>,
        tainted: bool,
        values: &'e Json,
    },
    /// The state document of a stack.
    State { document: &'e StateDocument },
    /// A kept version of a state.
    StateVersion {
        #[serde(flatten)]
        kept: &'e Version,
        /// Who wrote it: user, command and run; none of versions that a former Strata wrote.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<&'e Writer>,
    },
    /// How a resource differs between two versions of a state.
    Difference { address: &'e Address, difference: &'static str, fields: Vec<String>, from: u64, to: u64 },
    /// A resource has another address in the state.
    Moved { from: &'e Address, to: &'e Address },
    /// A resource was removed from the state; the object stays.
    Forgotten { address: &'e Address },
    /// A state document was put in the place of the stored one.
    Pushed { file: &'e Path },
    /// A guest with the ownership mark of the stack was recorded in its state.
    Recovered { address: String, vmid: i64 },
    /// An older version of a state is the newest one.
    RolledBack { key: &'e str, to: u64, serial: u64, dropped: Vec<String> },
    /// A state was copied to another store.
    Migrated { key: &'e str, serial: u64, older_versions: usize, left_behind: usize },
    /// The lock of a state was taken away, or there was none.
    Unlocked {
        key: &'e str,
        /// Who held it; none if it was not locked.
        holder: Option<String>,
    },

    /// A file was written, or is as it says.
    File {
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        /// The resource of OpenTofu that it was made from.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<&'e str>,
    },
    /// Something that OpenTofu's code cannot say was not rendered.
    Gap { what: &'e str, reason: &'e str },
    /// What `strata sync` did.
    Synced { written: usize, removed: usize, refused: usize },
    /// What another repository was read as.
    Imported { found: &'e [&'e str], files: usize, notes: usize },
    /// A value that the files of two environments say differently.
    EnvironmentDifference {
        path: &'e str,
        from: Option<Json>,
        to: Option<Json>,
        /// Why it is not brought over.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<&'e str>,
    },
    /// The file of an environment was written with what another one has.
    Promoted { from: &'e str, to: &'e str, file: &'e str },
    /// A guest or an object that `strata adopt` left as it is, and why.
    NotAdopted {
        /// Of a guest.
        #[serde(skip_serializing_if = "Option::is_none")]
        vmid: Option<u32>,
        object: &'e str,
        /// What it would have been called.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<&'e Address>,
        error: &'e SessionError,
    },
    /// The source and the state say what is live now.
    Accepted { address: &'e Address, changes: &'e [FieldChange] },
    /// Drift that cannot be written into the source, and why.
    NotAccepted { address: &'e Address, error: &'e SessionError },
    /// An object that OpenTofu made, or somebody by hand, was recorded.
    TakenOver { address: &'e Address, from: Option<&'e str> },
    /// What `strata import --state` or `strata adopt` did.
    TakenOverAll { taken: usize, known: usize, refused: usize, left: usize, dry_run: bool },

    /// A resource of OpenTofu begins to change.
    #[serde(rename = "step-started")]
    TofuStepStarted { step: Option<usize>, address: &'e str, action: Action },
    /// A resource of OpenTofu has changed.
    #[serde(rename = "step-done")]
    TofuStepDone { step: Option<usize>, address: &'e str, action: Action },
    /// A resource of OpenTofu could not be changed.
    #[serde(rename = "step-failed")]
    TofuStepFailed { step: Option<usize>, address: &'e str, action: Action },
    /// A line that OpenTofu said with `-json`, without what is secret.
    Tofu { tofu: Json },
    /// What OpenTofu found wrong with its code.
    TofuDiagnostic { diagnostic: Json },
    /// The outputs of a stack, as OpenTofu says them.
    TofuOutputs { outputs: Json },
    /// An address in the state of OpenTofu.
    TofuAddress { address: &'e str },

    /// Something that `strata doctor` looked at.
    Check { what: &'e str, ok: bool, error: Option<&'e SessionError> },
    /// The smallest set of privileges that can apply and destroy the stacks.
    Role { privileges: Vec<String> },

    /// The name of a secret, and the file that it is in.
    Secret { name: &'e str, file: &'e str },
    /// A file was encrypted.
    Encrypted { file: &'e Path },
    /// A file was edited.
    Edited { file: &'e Path, changed: bool },
    /// The keys of a file are new ones.
    Rotated { file: &'e Path },
    /// Secrets were gathered into a file.
    Collected { file: &'e Path, changed: bool, names: Vec<&'e str> },
    /// A secret stands in the clear.
    PlaintextSecret { file: &'e Path, message: String },
    /// The content of an encrypted file.
    Decrypted {
        file: &'e Path,
        /// The text, or base64 where it is none.
        content: String,
        encoding: &'static str,
    },

    /// How a node of a cluster is.
    Node {
        name: &'e str,
        role: &'e str,
        address: &'e str,
        talos: Option<&'e str>,
        kubelet: Option<&'e str>,
        healthy: bool,
        trouble: Option<&'e str>,
    },
    /// How a member of etcd is.
    EtcdMember { name: &'e str, id: String, learner: bool, healthy: bool },
    /// How a cluster is.
    Health { healthy: bool, etcd: EtcdHealth<'e>, kubernetes: KubernetesHealth<'e> },
    /// The versions that are asked for, and those that run.
    Versions { asked: Asked, kubernetes: Option<&'e str>, nodes: Vec<NodeVersions<'e>> },
    /// A file with the keys of a cluster was written.
    Made { file: &'e Path },
    /// A kubeconfig, where it was asked for on standard output.
    Kubeconfig { kubeconfig: &'e str },
    /// An etcd snapshot was saved.
    Snapshot { file: &'e str },
    /// etcd was brought back from a snapshot.
    Restored,
    /// A node was removed from its cluster and wiped.
    Reset { node: &'e str, state: &'static str },

    /// A backup of a guest: made, or listed.
    GuestBackup {
        address: &'e Address,
        volume: &'e str,
        /// When it was made, RFC 3339.
        created: String,
        /// In bytes.
        size: u64,
        notes: &'e str,
        /// It is neither pruned nor removed.
        protected: bool,
        /// What a Proxmox Backup Server found when it verified it last.
        #[serde(skip_serializing_if = "Option::is_none")]
        verification: Option<&'e str>,
        /// `ours`, `another`, `unknown`: by the configuration in it.
        whose: &'static str,
        /// Why it is not ours.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'e str>,
    },
    /// A backup is there, readable, and of this guest.
    GuestBackupVerified {
        address: &'e Address,
        volume: &'e str,
        /// The slots whose volumes are in it.
        disks: &'e [String],
        /// Those that backups leave out.
        left_out: &'e [String],
        #[serde(skip_serializing_if = "Option::is_none")]
        verification: Option<&'e str>,
    },
    /// A guest was restored from a backup.
    GuestRestored { address: &'e Address, volume: &'e str },
    /// A snapshot of a guest: taken, or listed.
    GuestSnapshot {
        address: &'e Address,
        name: &'e str,
        /// When it was taken, RFC 3339.
        created: String,
        notes: &'e str,
        /// It has the memory, too.
        memory: bool,
        /// Strata took it.
        ours: bool,
    },
    /// A guest was put back to a snapshot.
    GuestRolledBack { address: &'e Address, name: &'e str },
    /// A snapshot of a guest was deleted.
    GuestSnapshotDeleted { address: &'e Address, name: &'e str },

    /// Something that is done to a host, or to a guest for it.
    HostStep {
        host: &'e str,
        what: &'e str,
        /// It is part of the plan, and not done yet.
        planned: bool,
    },

    /// A server listens.
    Ready { url: &'e str },
    /// The simulated datacenter listens.
    SimReady { sim: Json },
    /// The states of a server were saved.
    Backup { states: usize },
    /// The states of a server were restored.
    Restore { states: usize },
    /// A new token of a user; it is shown once.
    Token { user: &'e str, token: &'e str },
    /// The hash of a password.
    Hash { hash: &'e str },
    /// A user of the state server.
    User { name: &'e str, rules: Vec<String>, tokens: Vec<&'e str>, password: bool },
    /// Users or tokens of the state server were changed.
    UsersChanged { user: &'e str },

    /// What the engine does; see the events after this one.
    #[serde(untagged)]
    Run(Box<strata_engine::Event>),
}

/// What `strata drift` finds.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DriftFound<'e> {
    Object(&'e Drift),
    /// A resource of OpenTofu.
    Tofu {
        address: String,
        drift: &'static str,
        changes: Side<'e>,
    },
    /// A stack that is not in the source any more.
    Stack {
        drift: &'static str,
        objects: usize,
    },
}

impl<'e> Event<'e> {
    pub fn note(message: &'e str) -> Self {
        Self::Note { message, address: None, file: None, line: None }
    }

    pub fn file(path: impl std::fmt::Display, status: Option<&'static str>) -> Self {
        Self::File { path: path.to_string(), status, from: None }
    }

    pub fn tofu_resource(held: &'e Held, prefix: &str) -> Self {
        Self::TofuResource {
            address: format!("{prefix}{}", held.address),
            kind: &held.kind,
            id: held.id.as_deref(),
            tainted: held.tainted,
            values: &held.values,
        }
    }

    pub fn decrypted(file: &'e Path, content: &[u8]) -> Self {
        match std::str::from_utf8(content) {
            Ok(text) => Self::Decrypted { file, content: text.to_owned(), encoding: "text" },
            Err(_) => Self::Decrypted { file, content: BASE64.encode(content), encoding: "base64" },
        }
    }

    pub fn diagnostic(found: &Diagnostic, sources: &SourceMap) -> Self {
        let mut json = strata_diagnostics::to_json(found, sources);
        let place = serde_json::from_value(json.clone()).ok();
        let related = serde_json::from_value(json["related"].take()).unwrap_or_default();
        Self::Diagnostic {
            severity: found.severity.as_str().to_owned(),
            code: found.code.to_owned(),
            message: found.message.clone(),
            place,
            hint: found.hint.clone(),
            notes: found.notes.clone(),
            related,
        }
    }

    /// One step, with the fields that its kind reports.
    pub fn planned(step: &'e Step) -> Self {
        let reported = step.address.kind().table().shown.reported.iter();
        Self::Planned {
            address: step.address.to_string(),
            action: match step.action {
                StepAction::Create if step.replacement => "replace",
                StepAction::Create => "create",
                StepAction::Update => "update",
                StepAction::Delete => "delete",
                StepAction::DeleteFormer => "delete-former",
                StepAction::Record => "record",
                StepAction::Forget => "forget",
            },
            from: None,
            place: reported.filter_map(|field| Some((*field, step.spec.get(*field)?))).collect(),
            restart: step.restart,
            changes: Side::Strata(&step.changes),
            reasons: step.reasons.iter().map(String::as_str).collect(),
        }
    }

    /// An object that gets another address.
    pub fn planned_move(planned: &'e PlannedMove) -> Self {
        Self::Planned {
            address: planned.to.to_string(),
            action: "moved",
            from: Some(&planned.from),
            place: BTreeMap::new(),
            restart: false,
            changes: Side::Strata(&[]),
            reasons: Vec::new(),
        }
    }

    /// One change of OpenTofu, in the same keys; `prefix` makes its address ours.
    pub fn planned_by_tofu(change: &'e ResourceChange, prefix: &str) -> Self {
        Self::Planned {
            address: format!("{prefix}{}", change.address),
            action: match change.action {
                Action::Create => "create",
                Action::Update => "update",
                Action::Replace => "replace",
                Action::Delete => "delete",
                Action::Import => "import",
                Action::Forget => "forget",
                Action::Move => "move",
                Action::None => "none",
            },
            from: None,
            place: BTreeMap::new(),
            restart: false,
            changes: Side::OpenTofu(&change.changes),
            reasons: change.reason.as_deref().into_iter().collect(),
        }
    }
}
