//! What names in code stand for: variables, locals, outputs of modules, and attributes of resources, of one instance or of all.

use super::super::eval::Frame;
use super::super::hcl::Block;
use super::super::tree::{Content, SourceLine, Tree};
use super::{Module, SURE_DEPTH, identity, without_meta};

impl Module<'_> {
    /// What a name that no loop binds stands for, and how many steps behind it that took.
    pub(in super::super) fn named(
        &self,
        frame: &Frame<'_>,
        root: &str,
        steps: &[Step],
    ) -> Option<(Tree, usize)> {
        let name = steps.first()?.name()?;
        if root == "var" {
            return Some((self.variables.get(name)?.clone(), 1));
        }
        let taken = if matches!(root, "local" | "path") { 1 } else { steps.len() };
        let key = format!("{root}{}", written(&steps[..taken]));
        if let Some(known) = self.named.borrow().get(&key) {
            return known.clone();
        }
        let found = self.work_out(frame, root, name, steps);
        // Deep inside, and where modules ask each other, what is found may have been cut short.
        if frame.depth() <= SURE_DEPTH && self.asked.borrow().is_empty() {
            self.named.borrow_mut().insert(key, found.clone());
        }
        found
    }

    fn work_out(&self, frame: &Frame<'_>, root: &str, name: &str, steps: &[Step]) -> Option<(Tree, usize)> {
        let inner = Frame::new(self, frame.depth() + 1);
        match root {
            "local" => {
                let locals = self.blocks.iter().filter(|block| block.kind == "locals");
                let found = locals.filter_map(|block| block.attribute(name)).next_back()?;
                Some((inner.attribute(found), 1))
            }
            "path" => {
                let folder = match name {
                    "module" => &self.folder,
                    "root" | "cwd" => &self.root,
                    _ => return None,
                };
                Some((Tree::new(SourceLine::new(folder, 1), Content::Text(folder.clone())), 1))
            }
            "module" => {
                let call =
                    self.blocks.iter().find(|block| block.kind == "module" && block.label(0) == name)?;
                if !self.asked.borrow_mut().insert(name.to_owned()) {
                    return None;
                }
                let found = self.outputs(&inner, call, &steps[1..]);
                self.asked.borrow_mut().remove(name);
                found.map(|(tree, used)| (tree, used + 1))
            }
            "data" => {
                let own = steps.get(1)?.name()?;
                let is_it =
                    |block: &&Block| block.kind == "data" && block.label(0) == name && block.label(1) == own;
                let block = self.blocks.iter().find(is_it)?;
                let (tree, used) =
                    self.of_resource(&inner, block, &format!("data.{name}.{own}"), &steps[2..])?;
                Some((tree, used + 2))
            }
            "each" | "count" | "self" | "terraform" => None,
            kind => {
                let is_it = |block: &&Block| {
                    block.kind == "resource" && block.label(0) == kind && block.label(1) == name
                };
                let block = self.blocks.iter().find(is_it)?;
                let (tree, used) = self.of_resource(&inner, block, &format!("{kind}.{name}"), &steps[1..])?;
                Some((tree, used + 1))
            }
        }
    }

    /// What is asked of a resource: what its code says, or a reference that names it wherever it is passed on.
    fn of_resource(
        &self,
        frame: &Frame<'_>,
        block: &Block,
        address: &str,
        steps: &[Step],
    ) -> Option<(Tree, usize)> {
        let several = block.attribute("count").is_some() || block.attribute("for_each").is_some();
        if !several {
            return self.attribute_of(frame, block, format!("{}{address}", self.path), steps);
        }
        let instances = self.instances(frame, block, &block.place, &mut Vec::new());
        match steps.first() {
            Some(Step::Key(key)) => {
                let number = key.parse::<usize>().ok().filter(|_| block.attribute("count").is_some());
                let (own, instance) = match number {
                    Some(number) => instances.get(number)?,
                    None => instances.iter().find(|(own, _)| own.as_ref() == Some(key))?,
                };
                let key = own.as_ref().map(|own| format!("[{own}]")).unwrap_or_default();
                let address = format!("{}{address}{key}", self.path);
                let (tree, used) = self.attribute_of(instance, block, address, &steps[1..])?;
                Some((tree, used + 1))
            }
            Some(Step::Name(_)) => None,
            _ => {
                let whole = |own: &Option<String>, instance: &Frame<'_>| {
                    let key = own.as_ref().map(|own| format!("[{own}]")).unwrap_or_default();
                    self.attribute_of(instance, block, format!("{}{address}{key}", self.path), &[])
                };
                let bodies: Option<Vec<(String, Tree)>> = instances
                    .iter()
                    .map(|(own, instance)| Some((own.clone().unwrap_or_default(), whole(own, instance)?.0)))
                    .collect();
                Some((several_of(block, bodies?), 0))
            }
        }
    }

    /// One attribute of one instance; all of them where nothing more is asked.
    fn attribute_of(
        &self,
        frame: &Frame<'_>,
        block: &Block,
        address: String,
        steps: &[Step],
    ) -> Option<(Tree, usize)> {
        let reference =
            |text: String| Tree::new(block.place.clone(), Content::Unknown(format!("{address}{text}")));
        let Some(wanted) = steps.first().map(Step::name) else {
            let mut entries = without_meta(&frame.block(block)).entries().to_vec();
            for computed in ["id", identity(block.label(0))] {
                if !entries.iter().any(|(known, _)| known == computed) {
                    entries.push((computed.to_owned(), reference(format!(".{computed}"))));
                }
            }
            return Some((Tree::map_of(block.place.clone(), entries), 0));
        };
        let wanted = wanted?;
        let own =
            if wanted == "id" && block.attribute("id").is_none() { identity(block.label(0)) } else { wanted };
        match block.attribute(own) {
            Some(attribute) => Some((frame.attribute(attribute), 1)),
            None if block.blocks.iter().any(|inner| inner.kind == own) => {
                let (_, tree) = frame.block(block).entries().iter().find(|(known, _)| known == own)?.clone();
                Some((tree, 1))
            }
            None => Some((reference(written(steps)), steps.len())),
        }
    }

    /// What is asked of a call: one output, those of one instance, or of all.
    fn outputs(&self, frame: &Frame<'_>, call: &Block, steps: &[Step]) -> Option<(Tree, usize)> {
        let several = call.attribute("count").is_some() || call.attribute("for_each").is_some();
        if !several {
            let child = self.child(call, &frame.block(call), None)?;
            return match steps.first() {
                Some(Step::Name(output)) => Some((child.output(output)?, 1)),
                _ => Some((child.all_outputs(), 0)),
            };
        }
        let instances = self.instances(frame, call, &call.place, &mut Vec::new());
        let by_number = call.attribute("count").is_some();
        let one = |number: usize, own: &Option<String>, instance: &Frame<'_>| {
            let key = own.clone().or_else(|| by_number.then(|| number.to_string()));
            self.child(call, &instance.block(call), key.as_deref())
        };
        if let Some(Step::Key(key)) = steps.first() {
            let number = key.parse::<usize>().ok().filter(|_| by_number);
            let found = instances.iter().enumerate().find(|(index, (own, _))| match number {
                Some(number) => *index == number,
                None => own.as_ref() == Some(key),
            });
            let (index, (own, instance)) = found?;
            let child = one(index, own, instance)?;
            return match steps.get(1) {
                Some(Step::Name(output)) => Some((child.output(output)?, 2)),
                _ => Some((child.all_outputs(), 1)),
            };
        }
        let all: Option<Vec<(String, Tree)>> = instances
            .iter()
            .enumerate()
            .map(|(index, (own, instance))| {
                Some((own.clone().unwrap_or_default(), one(index, own, instance)?.all_outputs()))
            })
            .collect();
        Some((several_of(call, all?), 0))
    }

    fn output(&self, name: &str) -> Option<Tree> {
        let found = self.blocks.iter().find(|block| block.kind == "output" && block.label(0) == name)?;
        Some(Frame::new(self, 1).attribute(found.attribute("value")?))
    }

    fn all_outputs(&self) -> Tree {
        let names = self.blocks.iter().filter(|block| block.kind == "output").map(|block| block.label(0));
        let entries = names.filter_map(|name| Some((name.to_owned(), self.output(name)?))).collect();
        Tree::map_of(SourceLine::new(&self.folder, 1), entries)
    }
}

/// A step behind a name: `.vm_id`, `["web"]`, or one that is none of these.
pub(in super::super) enum Step {
    Name(String),
    Key(String),
    Other,
}

impl Step {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(to, ".{name}"),
            Self::Key(key) => write!(to, "[{key}]"),
            Self::Other => to.write_str("[*]"),
        }
    }
}

/// Steps as they are written.
fn written(steps: &[Step]) -> String {
    steps.iter().map(ToString::to_string).collect()
}

/// Instances by their keys, or by their numbers.
fn several_of(block: &Block, found: Vec<(String, Tree)>) -> Tree {
    if block.attribute("count").is_some() {
        Tree::list_of(block.place.clone(), found.into_iter().map(|(_, tree)| tree).collect())
    } else {
        Tree::map_of(block.place.clone(), found)
    }
}
