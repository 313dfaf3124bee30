//! A module of code with its variables filled in, and the resources that it and the modules below it come to.

mod reference;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use hcl_edit::expr::{Expression, ObjectKey};
use strata_source::world::{World, join};

pub(super) use self::reference::Step;
use super::eval::{Frame, each};
use super::files::CODE;
use super::hcl::{Attribute, Block, Source};
use super::parse::Problem;
use super::tree::{Content, Marks, SourceLine, Tree};
use super::{hcl, parse};
use strata_tofu::resolve_path;

/// References that are followed this deep are followed to their end.
const SURE_DEPTH: usize = 16;
/// Modules within modules.
const MAX_LEVEL: usize = 8;
/// Expressions that are looked at for one root: what a few lines of loops in loops would otherwise multiply.
const BUDGET: usize = 1_500_000;
/// Arguments that say how, not what.
const META: [&str; 10] = [
    "count",
    "for_each",
    "provider",
    "providers",
    "depends_on",
    "source",
    "version",
    "lifecycle",
    "connection",
    "provisioner",
];

/// The code of the repository, read once.
pub(super) struct Library<'w> {
    world: &'w dyn World,
    folders: RefCell<HashMap<String, Rc<Vec<Block>>>>,
    pub(super) problems: RefCell<Vec<Problem>>,
    /// The files that were looked at.
    pub(super) read: RefCell<BTreeSet<String>>,
}

impl<'w> Library<'w> {
    pub(super) fn new(world: &'w dyn World) -> Self {
        Self { world, folders: RefCell::default(), problems: RefCell::default(), read: RefCell::default() }
    }

    /// The blocks of a folder's `.tf` files.
    pub(super) fn folder(&self, folder: &str) -> Rc<Vec<Block>> {
        if let Some(known) = self.folders.borrow().get(folder) {
            return known.clone();
        }
        let mut blocks = Vec::new();
        let entries = self.world.list(folder).unwrap_or_default();
        let own = |stem: &str| entries.iter().any(|other| other.name == format!("{stem}.tofu"));
        for entry in &entries {
            if entry.is_folder || !CODE.iter().any(|ending| entry.name.ends_with(ending)) {
                continue;
            }
            if entry.name.strip_suffix(".tf").is_some_and(own) {
                self.read.borrow_mut().insert(join(folder, &entry.name));
                continue;
            }
            let path = join(folder, &entry.name);
            let Some(text) = self.read(&path) else { continue };
            match hcl::parse(&path, &text) {
                Ok((_, found)) => blocks.extend(found),
                Err((place, reason)) => {
                    self.problems.borrow_mut().push((place, format!("the file was not read: {reason}")));
                }
            }
        }
        let blocks = Rc::new(blocks);
        self.folders.borrow_mut().insert(folder.to_owned(), blocks.clone());
        blocks
    }

    pub(super) fn read(&self, path: &str) -> Option<String> {
        let content = self.world.read(path).ok()?;
        self.read.borrow_mut().insert(path.to_owned());
        Some(parse::text(&content).0)
    }
}

pub(super) struct Module<'w> {
    pub(super) folder: String,
    pub(super) blocks: Rc<Vec<Block>>,
    pub(super) variables: BTreeMap<String, Tree>,
    pub(super) marks: Rc<Marks>,
    library: Rc<Library<'w>>,
    root: String,
    /// What stands before the addresses of its resources: `module.nodes[0].`.
    path: String,
    budget: Rc<Cell<usize>>,
    /// Where nobody says how many there are, one is looked at.
    assume: Rc<Cell<bool>>,
    level: usize,
    /// What names were found to stand for: the same is asked for again and again.
    named: RefCell<HashMap<String, Option<(Tree, usize)>>>,
    /// The calls of modules whose arguments are being worked out: two may ask each other for outputs.
    asked: RefCell<BTreeSet<String>>,
}

/// A resource of a provider, with everything about it that can be told.
pub(super) struct Resource {
    /// The type, as the provider calls it.
    pub(super) kind: String,
    pub(super) name: String,
    /// Which of several it is.
    pub(super) key: Option<String>,
    pub(super) body: Tree,
    /// Where it is asked for: in the root module.
    pub(super) place: SourceLine,
    /// Where its own block stands.
    pub(super) at: SourceLine,
    /// The module that it is in: `module.nodes[0].`, or nothing.
    pub(super) path: String,
    /// What the code says of its life.
    pub(super) lifecycle: Option<Lifecycle>,
}

/// The block `lifecycle` of a resource.
#[derive(Debug, Clone)]
pub(super) struct Lifecycle {
    pub(super) place: SourceLine,
    pub(super) prevent_destroy: bool,
    /// The attributes whose changes are ignored.
    pub(super) ignored: Vec<String>,
}

impl Resource {
    /// The address with the module that it is in, as references name it.
    pub(super) fn full_address(&self) -> String {
        format!("{}{}", self.path, self.address())
    }

    /// The block that it is made by, for all that are.
    pub(super) fn block(&self) -> String {
        format!("{}.{}", self.kind, self.name)
    }

    pub(super) fn address(&self) -> String {
        match &self.key {
            Some(key) => format!("{}.{}[{key}]", self.kind, self.name),
            None => format!("{}.{}", self.kind, self.name),
        }
    }
}

/// What a root module comes to.
#[derive(Default)]
pub(super) struct Expansion {
    pub(super) resources: Vec<Resource>,
    /// What the code asks others for: blocks of `data`, whose kinds are without that word.
    pub(super) data: Vec<Resource>,
    /// The calls of modules, with their arguments.
    pub(super) calls: Vec<(String, Tree)>,
    pub(super) notes: Vec<(SourceLine, String)>,
    /// The folders whose code was evaluated.
    pub(super) folders: BTreeSet<String>,
    /// A module that it calls is not here.
    pub(super) lacks_module: bool,
    /// Guests may be missing: how many there are of a block that makes some could not be told.
    pub(super) incomplete: bool,
}

impl<'w> Module<'w> {
    /// A root module. Files of variables come in the order in which a later one wins.
    pub(super) fn root(
        library: &Rc<Library<'w>>,
        marks: &Rc<Marks>,
        folder: &str,
        more: Vec<Block>,
        files: &[Vec<Attribute>],
    ) -> Self {
        let mut blocks: Vec<Block> = library.folder(folder).to_vec();
        blocks.extend(more);
        let mut module = Self {
            folder: folder.to_owned(),
            blocks: Rc::new(blocks),
            variables: BTreeMap::new(),
            marks: marks.clone(),
            library: library.clone(),
            root: folder.to_owned(),
            path: String::new(),
            budget: Rc::new(Cell::new(BUDGET)),
            assume: Rc::default(),
            level: 0,
            named: RefCell::default(),
            asked: RefCell::default(),
        };
        // What refers to another variable, which only code may do, is known in the second round.
        for _ in 0..2 {
            let mut given = BTreeMap::new();
            for attribute in files.iter().flatten() {
                given.insert(attribute.name.clone(), Frame::new(&module, 0).attribute(attribute));
            }
            module.variables = module.complete(given);
            module.named.take();
        }
        module
    }

    /// The variables that are declared, with their defaults and their types' defaults.
    fn complete(&self, mut given: BTreeMap<String, Tree>) -> BTreeMap<String, Tree> {
        let frame = Frame::new(self, 0);
        for block in self.blocks.iter().filter(|block| block.kind == "variable") {
            let name = block.label(0);
            if !given.contains_key(name)
                && let Some(default) = block.attribute("default")
            {
                given.insert(name.to_owned(), frame.attribute(default));
            }
            if let Some(shape) = block.attribute("type")
                && let Some(value) = given.get(name)
            {
                let whole = shaped(&frame, &shape.value, &shape.source, value);
                given.insert(name.to_owned(), whole);
            }
        }
        given
    }

    /// One step of the work that evaluation may take; false once there was enough.
    pub(super) fn spend(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0
    }

    /// Tells of a key that stands twice in an object.
    pub(super) fn given_again(&self, key: &str, place: &SourceLine, later: &SourceLine) {
        let message = format!("`{key}` is given again in line {}, which wins", later.line);
        let mut problems = self.library.problems.borrow_mut();
        if !problems.contains(&(place.clone(), message.clone())) {
            problems.push((place.clone(), message));
        }
    }

    pub(super) fn read(&self, path: &str) -> Option<(String, String)> {
        // `path.module` is a folder from the root of the repository already.
        let path = resolve_path("", path).filter(|path| !path.starts_with('/'))?;
        let text = self.library.read(&path)?;
        Some((path, text))
    }

    /// All variables as one mapping.
    pub(super) fn values(&self) -> Tree {
        let entries = self.variables.iter().map(|(name, tree)| (name.clone(), tree.clone())).collect();
        Tree::map_of(SourceLine::new(&self.folder, 1), entries)
    }

    /// The locals that say something themselves; those that are computed are made of what is said elsewhere.
    pub(super) fn locals(&self) -> Tree {
        let frame = Frame::new(self, 0);
        let mut entries = Vec::new();
        for block in self.blocks.iter().filter(|block| block.kind == "locals") {
            let says = |attribute: &&Attribute| {
                matches!(
                    attribute.value,
                    Expression::Bool(_)
                        | Expression::Number(_)
                        | Expression::String(_)
                        | Expression::HeredocTemplate(_)
                        | Expression::Array(_)
                        | Expression::Object(_)
                )
            };
            for attribute in block.attributes.iter().filter(says) {
                entries.push((format!("local.{}", attribute.name), frame.attribute(attribute)));
            }
        }
        Tree::map_of(SourceLine::new(&self.folder, 1), entries)
    }

    /// A module that a block calls, if its code is in the repository.
    fn child(&self, call: &Block, arguments: &Tree, key: Option<&str>) -> Option<Self> {
        if self.level >= MAX_LEVEL {
            return None;
        }
        let folder = self.folder_of(call)?;
        let key = key.map(|key| format!("[{key}]")).unwrap_or_default();
        let path = format!("{}module.{}{key}.", self.path, call.label(0));
        let blocks = self.library.folder(&folder);
        if blocks.is_empty() {
            return None;
        }
        let mut child = Self {
            folder,
            blocks,
            variables: BTreeMap::new(),
            marks: self.marks.clone(),
            library: self.library.clone(),
            root: self.root.clone(),
            path,
            budget: self.budget.clone(),
            assume: self.assume.clone(),
            level: self.level + 1,
            named: RefCell::default(),
            asked: RefCell::default(),
        };
        let given: BTreeMap<String, Tree> = arguments
            .entries()
            .iter()
            .filter(|(name, tree)| !META.contains(&name.as_str()) && !matches!(tree.content, Content::Null))
            .cloned()
            .collect();
        child.variables = child.complete(given);
        child.named.take();
        Some(child)
    }

    /// The folder of the module that a call names, if it lies in the repository.
    fn folder_of(&self, call: &Block) -> Option<String> {
        let source = call.literal("source")?;
        let inside = source.starts_with("./") || source.starts_with("../");
        inside.then(|| resolve_path(&self.folder, source)).flatten()
    }

    pub(super) fn expand(&self) -> Expansion {
        let mut found = Expansion::default();
        self.collect(&mut found, None);
        found
    }

    /// The same, with one of each where only a run, or a file that is not here, would tell how many there are.
    pub(super) fn expand_assuming(&self) -> Expansion {
        self.assume.set(true);
        self.named.take();
        let found = self.expand();
        self.assume.set(false);
        self.named.take();
        found
    }

    fn collect(&self, found: &mut Expansion, asked: Option<&SourceLine>) {
        let frame = Frame::new(self, 0);
        found.folders.insert(self.folder.clone());
        for block in self.blocks.iter() {
            let place = asked.unwrap_or(&block.place);
            match block.kind.as_str() {
                "resource" | "data" => {
                    let told = found.notes.len();
                    for (key, instance) in self.instances(&frame, block, place, &mut found.notes) {
                        let whole = instance.block(block);
                        let resource = Resource {
                            kind: block.label(0).to_owned(),
                            name: block.label(1).to_owned(),
                            key,
                            body: without_meta(&whole),
                            place: place.clone(),
                            at: block.place.clone(),
                            path: self.path.clone(),
                            lifecycle: lifecycle(block, &whole),
                        };
                        for step in block.blocks.iter().filter(|inner| inner.kind == "provisioner") {
                            let message = format!(
                                "`{}` runs a provisioner `{}`, which Strata does not: it was not carried over",
                                resource.block(),
                                step.label(0)
                            );
                            if !found.notes.iter().any(|(at, _)| *at == step.place) {
                                found.notes.push((step.place.clone(), message));
                            }
                        }
                        if block.kind == "data" {
                            found.data.push(resource);
                        } else {
                            found.resources.push(resource);
                        }
                    }
                    found.incomplete |= found.notes.len() > told && is_guest(block);
                }
                "module" => {
                    let told = found.notes.len();
                    let by_number = block.attribute("count").is_some();
                    let instances = self.instances(&frame, block, place, &mut found.notes);
                    found.incomplete |= found.notes.len() > told && self.makes_guests(block);
                    for (index, (key, instance)) in instances.into_iter().enumerate() {
                        let arguments = instance.block(block);
                        let key = key.or_else(|| by_number.then(|| index.to_string()));
                        match self.child(block, &arguments, key.as_deref()) {
                            Some(child) => child.collect(found, Some(place)),
                            None => {
                                let source = block.literal("source").unwrap_or_default();
                                let message = format!(
                                    "the module `{}` from `{source}` is not in the repository: what it makes is not known",
                                    block.label(0)
                                );
                                found.notes.push((block.place.clone(), message));
                                found.lacks_module = true;
                            }
                        }
                        let called = format!("{}module.{}.", self.path, block.label(0));
                        found.calls.push((called, without_meta(&arguments)));
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether the code that a call names has guests in it, however deep.
    fn makes_guests(&self, call: &Block) -> bool {
        self.folder_of(call).is_some_and(|folder| self.has_block(vec![folder], &is_guest))
    }

    /// Whether this code, or that of a module below it, has a resource of some kind, whatever its values come to.
    pub(super) fn could_make(&self, is_it: &dyn Fn(&Block) -> bool) -> bool {
        self.has_block(vec![self.folder.clone()], is_it)
    }

    fn has_block(&self, mut open: Vec<String>, is_it: &dyn Fn(&Block) -> bool) -> bool {
        let mut seen = BTreeSet::new();
        while let Some(folder) = open.pop() {
            if !seen.insert(folder.clone()) {
                continue;
            }
            for block in self.library.folder(&folder).iter() {
                if block.kind == "resource" && is_it(block) {
                    return true;
                }
                let source = block.literal("source").filter(|source| source.starts_with('.'));
                let source = source.filter(|_| block.kind == "module");
                open.extend(source.and_then(|source| resolve_path(&folder, source)));
            }
        }
        false
    }

    /// The frames of the instances of a block, with the key of each.
    fn instances<'m>(
        &'m self,
        frame: &Frame<'m>,
        block: &Block,
        place: &SourceLine,
        notes: &mut Vec<(SourceLine, String)>,
    ) -> Vec<(Option<String>, Frame<'m>)> {
        let label = block.labels.join(".");
        if let Some(count) = block.attribute("count") {
            let tree = frame.attribute(count);
            if self.assume.get() && matches!(tree.content, Content::Unknown(_)) {
                notes.push((
                    place.clone(),
                    format!(
                        "how many of `{label}` there are is in no file that was read: one was written down"
                    ),
                ));
                let number = Tree::new(tree.place.clone(), Content::Number(0.0));
                let one = Tree::map_of(tree.place.clone(), vec![("index".to_owned(), number)]);
                return vec![(None, frame.with("count", one))];
            }
            let Some(count) = tree.as_int_in(0..=10_000) else {
                notes.push((
                    place.clone(),
                    format!(
                        "how many of `{label}` there are cannot be known without running it: it was left out"
                    ),
                ));
                return Vec::new();
            };
            return (0..count)
                .map(|index| {
                    let number = Tree::new(tree.place.clone(), Content::Number(index as f64));
                    let one = Tree::map_of(tree.place.clone(), vec![("index".to_owned(), number)]);
                    // One that is there or not is no list.
                    let key = (count > 1).then(|| index.to_string());
                    (key, frame.with("count", one))
                })
                .collect();
        }
        if let Some(over) = block.attribute("for_each") {
            let tree = frame.attribute(over);
            let Some(items) = each(&tree) else {
                notes.push((
                    place.clone(),
                    format!("what `{label}` is made for cannot be known without running it: it was left out"),
                ));
                return Vec::new();
            };
            let is_list = matches!(tree.content, Content::List(_));
            return items
                .into_iter()
                .map(|(key, value)| {
                    // A set is its own keys.
                    let key = if is_list { value.clone() } else { key };
                    let name = super::eval::word(&key);
                    let one = vec![("key".to_owned(), key), ("value".to_owned(), value)];
                    (name, frame.with("each", Tree::map_of(tree.place.clone(), one)))
                })
                .collect();
        }
        vec![(None, frame.clone())]
    }
}

/// The attribute that a resource's `id` is equal to.
fn identity(kind: &str) -> &'static str {
    match super::guest::kind(kind) {
        "user" => "user_id",
        "role" => "role_id",
        "group" => "group_id",
        "pool" => "pool_id",
        "vm" | "container" => "vm_id",
        "hardware_mapping_pci" | "hardware_mapping_usb" | "network_linux_bridge" => "name",
        _ => "id",
    }
}

/// Whether a block makes a machine or a container.
fn is_guest(block: &Block) -> bool {
    let kind = super::guest::kind(block.label(0));
    matches!(kind, "vm" | "container" | "vm_qemu" | "lxc" | "lxc_guest" | "cloned_vm" | "vm2")
}

fn lifecycle(block: &Block, body: &Tree) -> Option<Lifecycle> {
    let found = block.blocks.iter().find(|inner| inner.kind == "lifecycle")?;
    let said = body.one("lifecycle").and_then(|tree| tree.bool("prevent_destroy"));
    let names = |expression: &Expression| -> Vec<String> {
        match expression {
            Expression::Array(items) => items.iter().map(|item| item.to_string().trim().to_owned()).collect(),
            other => vec![other.to_string().trim().to_owned()],
        }
    };
    Some(Lifecycle {
        place: found.place.clone(),
        prevent_destroy: said.unwrap_or(false),
        ignored: found.attribute("ignore_changes").map(|list| names(&list.value)).unwrap_or_default(),
    })
}

fn without_meta(tree: &Tree) -> Tree {
    let entries = tree.entries().iter().filter(|(name, _)| !META.contains(&name.as_str()));
    Tree::map_of(tree.place.clone(), entries.cloned().collect())
}

/// A value with what `optional(…, default)` in its type adds to it.
fn shaped(frame: &Frame<'_>, shape: &Expression, source: &Source, value: &Tree) -> Tree {
    let Some(call) = shape.as_func_call() else { return value.clone() };
    let Some(inner) = call.args.get(0) else { return value.clone() };
    match (call.name.name.as_str(), &value.content) {
        ("map", Content::Map(entries)) => {
            let entries = entries.iter().map(|(key, tree)| (key.clone(), shaped(frame, inner, source, tree)));
            Tree::map_of(value.place.clone(), entries.collect())
        }
        ("list" | "set", Content::List(items)) => {
            let items = items.iter().map(|tree| shaped(frame, inner, source, tree)).collect();
            Tree::list_of(value.place.clone(), items)
        }
        ("object", Content::Map(_)) => object(frame, inner, source, value),
        _ => value.clone(),
    }
}

fn object(frame: &Frame<'_>, shape: &Expression, source: &Source, value: &Tree) -> Tree {
    let Some(fields) = shape.as_object() else { return value.clone() };
    let mut entries: Vec<(String, Tree)> = value.entries().to_vec();
    for (key, field) in fields.iter() {
        let name = match key {
            ObjectKey::Ident(ident) => ident.as_str().to_owned(),
            ObjectKey::Expression(Expression::Variable(name)) => name.as_str().to_owned(),
            ObjectKey::Expression(other) => other.as_str().unwrap_or_default().to_owned(),
        };
        let (inner, default) = match field.expr().as_func_call() {
            Some(call) if call.name.name.as_str() == "optional" => (call.args.get(0), call.args.get(1)),
            _ => (Some(field.expr()), None),
        };
        let known = entries.iter().position(|(known, _)| *known == name);
        let missing = known.is_none_or(|at| matches!(entries[at].1.content, Content::Null));
        let tree = if missing {
            match default {
                Some(default) => {
                    // The code's word, not the user's.
                    let tree = frame.value(default, source, &value.place);
                    tree.hush();
                    tree
                }
                // An attribute that is not set is null to the code.
                None => Tree::new(value.place.clone(), Content::Null),
            }
        } else {
            match known {
                Some(at) => entries[at].1.clone(),
                None => continue,
            }
        };
        let tree = inner.map_or_else(|| tree.clone(), |inner| shaped(frame, inner, source, &tree));
        match known {
            Some(at) => entries[at].1 = tree,
            None => entries.push((name, tree)),
        }
    }
    Tree::map_of(value.place.clone(), entries)
}
