//! Which stacks a commit range can change, in which environments, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use strata_events::{ChangeReason, Event};

use strata_source::world::World;
use strata_source::{Input, Inputs, Repository};

/// A stack in one of its environments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackKey {
    pub environment: String,
    pub stack: String,
}

impl StackKey {
    /// The key of its state.
    pub fn state_key(&self) -> String {
        format!("{}/{}", self.environment, self.stack)
    }
}

/// A stack in one version of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StackVersion {
    inputs: Inputs,
    /// The files that its source is read from, with their content: they say why a source differs.
    files: BTreeMap<String, Option<Vec<u8>>>,
}

/// Every stack of one version of a repository, and what each is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceVersion {
    stacks: BTreeMap<StackKey, StackVersion>,
}

impl SourceVersion {
    /// Reads a repository. An error is the first thing that is wrong with it: then nobody can say what its stacks are.
    pub fn read(world: &dyn World) -> Result<Self, String> {
        let (repository, diagnostics) = Repository::load(world);
        if let Some(error) = diagnostics.iter().find(|one| one.is_error()) {
            return Err(error.message.clone());
        }
        Ok(Self::of(&repository, world))
    }

    /// A repository that was read from a world.
    pub fn of(repository: &Repository, world: &dyn World) -> Self {
        let mut stacks = BTreeMap::new();
        for stack in repository.effective() {
            let key = StackKey { environment: stack.environment.clone(), stack: stack.name.clone() };
            let files = repository.source_files(stack).into_iter();
            let version = StackVersion {
                inputs: repository.inputs(stack, world),
                files: files.map(|path| (path.clone(), world.read(&path).ok())).collect(),
            };
            stacks.insert(key, version);
        }
        Self { stacks }
    }

    pub fn keys(&self) -> impl Iterator<Item = &StackKey> {
        self.stacks.keys()
    }

    /// The digest of everything that a stack is made from; none where it is not in the source.
    pub fn digest(&self, key: &StackKey) -> Option<String> {
        let mut hash = Sha256::new();
        for (input, digest) in &self.stacks.get(key)?.inputs {
            let name = input.to_string();
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(name);
            hash.update(digest);
        }
        Some(hex::encode(hash.finalize()))
    }

    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// What can change on the way to another version.
    pub fn changes_to(&self, head: &Self) -> Vec<ChangedStack> {
        let keys: BTreeSet<&StackKey> = self.stacks.keys().chain(head.stacks.keys()).collect();
        let changed = keys.into_iter().filter_map(|key| {
            let (change, reasons) = match (self.stacks.get(key), head.stacks.get(key)) {
                (Some(before), Some(after)) if before.inputs == after.inputs => return None,
                (Some(before), Some(after)) => (Change::Changed, reasons(before, after)),
                (None, Some(_)) => (Change::Added, vec![Reason::added()]),
                (_, None) => (Change::Removed, vec![Reason::removed()]),
            };
            Some(ChangedStack { key: key.clone(), change, reasons })
        });
        changed.collect()
    }

    /// Every stack, for one reason: nobody can say more.
    pub fn everything(&self, why: &str) -> Vec<ChangedStack> {
        let reason = Reason { part: Part::Unknown, about: String::new(), text: why.to_owned() };
        let all = self.stacks.keys().map(|key| ChangedStack {
            key: key.clone(),
            change: Change::Changed,
            reasons: vec![reason.clone()],
        });
        all.collect()
    }
}

/// What happens to a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Changed,
    Removed,
}

impl Change {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// A stack that can change, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedStack {
    pub key: StackKey,
    pub change: Change,
    pub reasons: Vec<Reason>,
}

/// One reason why a stack can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What sort of thing differs.
    pub part: Part,
    /// The file, target, stack or key of strata.yaml.
    pub about: String,
    /// The same for people.
    pub text: String,
}

/// What sort of thing a stack is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Source,
    Setting,
    Target,
    File,
    Secrets,
    Keys,
    Code,
    Stack,
    SharedStorages,
    BackupMembers,
    Moves,
    /// The stack was added or removed as a whole.
    Whole,
    /// Nobody can say what differs.
    Unknown,
}

impl Part {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Setting => "setting",
            Self::Target => "target",
            Self::File => "file",
            Self::Secrets => "secrets",
            Self::Keys => "keys",
            Self::Code => "code",
            Self::Stack => "stack",
            Self::SharedStorages => "shared-storages",
            Self::BackupMembers => "backup-members",
            Self::Moves => "moves",
            Self::Whole => "whole",
            Self::Unknown => "unknown",
        }
    }
}

impl Reason {
    fn added() -> Self {
        let text = "it is new in the source".to_owned();
        Self { part: Part::Whole, about: String::new(), text }
    }

    fn removed() -> Self {
        let text = "it is not in the source any more".to_owned();
        Self { part: Part::Whole, about: String::new(), text }
    }

    fn of(input: &Input) -> Self {
        let (part, about) = match input {
            Input::Source => (Part::Source, String::new()),
            Input::Setting(key) => (Part::Setting, (*key).to_owned()),
            Input::Target(name) => (Part::Target, name.clone()),
            Input::File(path) => (Part::File, path.clone()),
            Input::Secrets(path) => (Part::Secrets, path.clone()),
            Input::Keys(path) => (Part::Keys, path.clone()),
            Input::Code(path) => (Part::Code, path.clone()),
            Input::Stack(name) => (Part::Stack, name.clone()),
            Input::SharedStorages => (Part::SharedStorages, String::new()),
            Input::BackupMembers => (Part::BackupMembers, String::new()),
            Input::Moves => (Part::Moves, String::new()),
        };
        Self { part, about, text: input.to_string() }
    }
}

/// Every part that differs. Of the source itself, the files that do.
fn reasons(before: &StackVersion, after: &StackVersion) -> Vec<Reason> {
    let inputs: BTreeSet<&Input> = before.inputs.keys().chain(after.inputs.keys()).collect();
    let mut found = Vec::new();
    for input in inputs.into_iter().filter(|input| before.inputs.get(*input) != after.inputs.get(*input)) {
        if *input != Input::Source {
            found.push(Reason::of(input));
            continue;
        }
        let files: BTreeSet<&String> = before.files.keys().chain(after.files.keys()).collect();
        let content = |version: &'_ StackVersion, path: &String| version.files.get(path).cloned().flatten();
        let differ: Vec<&String> =
            files.into_iter().filter(|path| content(before, path) != content(after, path)).collect();
        if differ.is_empty() {
            found.push(Reason::of(input));
        }
        found.extend(differ.into_iter().map(|path| Reason {
            part: Part::Source,
            about: path.clone(),
            text: format!("`{path}`"),
        }));
    }
    found
}

impl ChangedStack {
    /// For programs.
    pub fn event(&self) -> Event<'_> {
        let reason = |reason: &Reason| ChangeReason {
            part: reason.part.as_str(),
            about: reason.about.clone(),
            text: reason.text.clone(),
        };
        Event::StackChanged {
            change: self.change.as_str(),
            reasons: self.reasons.iter().map(reason).collect(),
        }
    }
}

/// For people: each stack with its reasons.
pub fn render(changed: &[ChangedStack]) -> String {
    let mut text = String::new();
    for ChangedStack { key, change, reasons } in changed {
        let sign = match change {
            Change::Added => '+',
            Change::Changed => '~',
            Change::Removed => '-',
        };
        let _ = writeln!(text, "  {sign} {} ({})", key.stack, key.environment);
        for reason in reasons {
            let _ = writeln!(text, "      {}", reason.text);
        }
    }
    text
}
