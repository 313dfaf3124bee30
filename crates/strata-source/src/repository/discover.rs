//! Finds the files of a repository and reads them into trees.

use strata_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use strata_yaml::{Node, Parsed, parse};

use crate::cluster::flat;
use crate::repository::StackKind;
use crate::stack::Layer;
use crate::world::{World, join};

/// Folders below `stacks/` are searched this deep.
const MAX_FOLDERS: usize = 16;

/// The files, as trees.
pub(super) struct DiscoveredFiles {
    pub(super) sources: SourceMap,
    pub(super) settings: Option<(FileId, Node)>,
    pub(super) stacks: Vec<StackFile>,
    pub(super) environments: Vec<EnvironmentFile>,
}

pub(super) struct StackFile {
    pub(super) kind: StackKind,
    pub(super) layer: Layer,
    /// By the file or folder; the file may say another.
    pub(super) name: String,
    pub(super) path: String,
    pub(super) folder: String,
    pub(super) file: FileId,
    /// `None` where it could not be read.
    pub(super) tree: Option<Node>,
    /// `nodes.yaml` beside a cluster.
    pub(super) nodes: Option<Node>,
}

pub(super) struct EnvironmentFile {
    pub(super) name: String,
    pub(super) file: FileId,
    pub(super) tree: Option<Node>,
}

pub(super) fn discover(world: &dyn World, diagnostics: &mut Diagnostics) -> DiscoveredFiles {
    let mut finder = Finder { world, diagnostics, sources: SourceMap::new() };
    let settings = finder.settings();
    let mut stacks = finder.hypervisors();
    stacks.extend(finder.root_cluster());
    stacks.extend(finder.clusters());
    finder.stacks("stacks", 0, false, &mut stacks);
    let environments = finder.environments();
    let Finder { sources, .. } = finder;
    DiscoveredFiles { sources, settings, stacks, environments }
}

struct Finder<'w, 'd> {
    world: &'w dyn World,
    diagnostics: &'d mut Diagnostics,
    sources: SourceMap,
}

impl Finder<'_, '_> {
    fn settings(&mut self) -> Option<(FileId, Node)> {
        let (file, parsed) = self.read("strata.yaml")?;
        match parsed {
            Parsed::Document(node) => Some((file, node)),
            Parsed::Empty | Parsed::Broken => None,
        }
    }

    fn hypervisors(&mut self) -> Vec<StackFile> {
        let mut stacks = Vec::new();
        for name in self.yaml_files("hypervisors") {
            let path = format!("hypervisors/{name}.yaml");
            let stack = (StackKind::Hypervisor, Layer::Hypervisors, name.as_str());
            stacks.extend(self.stack(stack, &path, "hypervisors", "the hypervisors of a target"));
        }
        stacks
    }

    fn clusters(&mut self) -> Vec<StackFile> {
        let mut stacks = Vec::new();
        for name in self.folders("clusters") {
            let folder = format!("clusters/{name}");
            let stack = (StackKind::Cluster, Layer::Platforms, name.as_str());
            if let Some(stack) = self.stack(stack, &format!("{folder}/cluster.yaml"), &folder, "a cluster") {
                stacks.push(self.with_nodes(stack));
            }
        }
        stacks
    }

    /// A cluster at the root: the flat family keeps it there.
    fn root_cluster(&mut self) -> Option<StackFile> {
        let stack = (StackKind::Cluster, Layer::Platforms, flat::CLUSTER_NAME);
        let stack = self.stack(stack, "cluster.yaml", "", "a cluster")?;
        // Another program's file may have this name too.
        let ours = |tree: &Node| flat::is_flat(tree) || tree.at(&["cluster", "talos"]).is_some();
        if stack.tree.as_ref().is_some_and(|tree| !ours(tree)) {
            return None;
        }
        Some(self.with_nodes(stack))
    }

    fn with_nodes(&mut self, stack: StackFile) -> StackFile {
        let path = join(&stack.folder, "nodes.yaml");
        let nodes = match self.read(&path) {
            Some((_, Parsed::Document(node))) => Some(node),
            _ => None,
        };
        StackFile { nodes, ..stack }
    }

    /// Folders within a stack of OpenTofu are its own modules and files, unless they say that they are stacks.
    fn stacks(&mut self, folder: &str, depth: usize, within: bool, stacks: &mut Vec<StackFile>) {
        if depth > MAX_FOLDERS {
            let message =
                format!("`{folder}` is nested more than {MAX_FOLDERS} folders deep and is not read");
            self.diagnostics.push(Diagnostic::warning("too-deep", message));
            return;
        }
        let listed = self.list(folder);
        let name = folder.rsplit('/').next().unwrap_or(folder).to_owned();
        let has = |file: &str| listed.iter().any(|entry| !entry.is_folder && entry.name == file);
        let has_code = listed.iter().any(|entry| !entry.is_folder && is_code(&entry.name));
        let mut within = within;
        if has("stack.yaml") {
            let stack = (StackKind::Machines, Layer::Workloads, name.as_str());
            let mut stack = self.stack(stack, &format!("{folder}/stack.yaml"), folder, "a stack");
            if let Some(stack) = &mut stack
                && stack.tree.as_ref().is_some_and(|tree| tree.get("tofu").is_some())
            {
                stack.kind = StackKind::Tofu;
                within = true;
                if !has_code {
                    let message = format!("there is no OpenTofu code in `{folder}`");
                    let problem = Diagnostic::error("no-code", message).at(Span::start_of(stack.file));
                    self.diagnostics.push(problem.hint("put its `*.tf` files beside `stack.yaml`"));
                }
            } else if let Some(stack) = &stack
                && has_code
                && stack.tree.as_ref().is_some_and(describes_nothing)
            {
                let message = format!("the stack has no machines, and the code in `{folder}` is not driven");
                let problem = Diagnostic::warning("not-driven", message).at(Span::start_of(stack.file));
                self.diagnostics.push(problem.hint("say `tofu: {}` here if the code was written by hand"));
            }
            stacks.extend(stack);
        } else if has_code && !within {
            within = true;
            let file = self.sources.add(folder, "");
            stacks.push(StackFile {
                kind: StackKind::Tofu,
                layer: Layer::Workloads,
                name,
                path: folder.to_owned(),
                folder: folder.to_owned(),
                file,
                // It says nothing of itself, but an environment may.
                tree: Some(Node::mapping(Vec::new(), Span::start_of(file))),
                nodes: None,
            });
        }
        for entry in listed.iter().filter(|entry| entry.is_folder && !entry.name.starts_with('.')) {
            self.stacks(&format!("{folder}/{}", entry.name), depth + 1, within, stacks);
        }
    }

    fn environments(&mut self) -> Vec<EnvironmentFile> {
        let mut environments = Vec::new();
        for name in self.yaml_files("environments") {
            let Some((file, parsed)) = self.read(&format!("environments/{name}.yaml")) else { continue };
            let tree = match parsed {
                Parsed::Document(node) => Some(node),
                Parsed::Empty | Parsed::Broken => None,
            };
            environments.push(EnvironmentFile { name, file, tree });
        }
        environments
    }

    fn stack(
        &mut self,
        (kind, layer, name): (StackKind, Layer, &str),
        path: &str,
        folder: &str,
        what: &str,
    ) -> Option<StackFile> {
        let (file, parsed) = self.read(path)?;
        let tree = parsed.required(file, what, self.diagnostics);
        let (name, path, folder) = (name.to_owned(), path.to_owned(), folder.to_owned());
        Some(StackFile { kind, layer, name, path, folder, file, tree, nodes: None })
    }

    /// The tree of a file; `None` where there is no such file.
    fn read(&mut self, path: &str) -> Option<(FileId, Parsed)> {
        let content = match self.world.read(path) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                let file = self.sources.add(path, "");
                let message = format!("`{path}` cannot be read: {error}");
                self.diagnostics.push(Diagnostic::error("unreadable", message).at(Span::start_of(file)));
                return Some((file, Parsed::Broken));
            }
        };
        match String::from_utf8(content) {
            Ok(text) => {
                let file = self.sources.add(path, text);
                Some((file, parse(&self.sources, file, self.diagnostics)))
            }
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let file = self.sources.add(path, text);
                let message = "the file is not UTF-8 text";
                self.diagnostics.push(Diagnostic::error("unreadable", message).at(Span::new(
                    file,
                    valid,
                    valid + 1,
                )));
                Some((file, Parsed::Broken))
            }
        }
    }

    fn list(&mut self, folder: &str) -> Vec<crate::world::Listed> {
        self.world.list(folder).unwrap_or_else(|error| {
            let message = format!("the folder `{folder}` cannot be read: {error}");
            self.diagnostics.push(Diagnostic::error("unreadable", message));
            Vec::new()
        })
    }

    fn folders(&mut self, folder: &str) -> Vec<String> {
        let listed = self.list(folder);
        listed
            .into_iter()
            .filter(|entry| entry.is_folder && !entry.name.starts_with('.'))
            .map(|e| e.name)
            .collect()
    }

    /// The names of the `.yaml` files of a folder, without the extension.
    fn yaml_files(&mut self, folder: &str) -> Vec<String> {
        let mut names = Vec::new();
        for entry in
            self.list(folder).into_iter().filter(|entry| !entry.is_folder && !entry.name.starts_with('.'))
        {
            if let Some(name) = entry.name.strip_suffix(".yaml") {
                names.push(name.to_owned());
            } else if let Some(name) = entry.name.strip_suffix(".yml") {
                let message = format!("`{folder}/{}` is not read", entry.name);
                let hint = format!("call it `{name}.yaml`");
                self.diagnostics.push(Diagnostic::warning("ignored-file", message).hint(hint));
            }
        }
        names
    }
}

/// Code of OpenTofu, in either of its spellings.
fn describes_nothing(tree: &Node) -> bool {
    ["images", "templates", "vms", "containers"].iter().all(|key| tree.get(key).is_none())
}

fn is_code(name: &str) -> bool {
    [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|ending| name.ends_with(ending))
}
