//! The files of variables of a root, in the order in which a later one wins; and roots that have several sets of them.

use super::super::hcl::{Attribute, Block};
use super::super::module::Module;
use super::super::tree::Place;
use super::super::{Import, parse};
use super::Root;

struct File {
    name: String,
    attributes: Vec<Attribute>,
    blocks: Vec<Block>,
}

/// A root for each set of values that its folder has.
pub(super) fn roots<'w>(import: &mut Import<'w>, folder: &str) -> Vec<Root<'w>> {
    let (always, others, secrets) = files(import, folder);
    // Files that say the same things in other words are for different places.
    let alike = |one: &File, other: &File| {
        one.attributes
            .iter()
            .any(|attribute| other.attributes.iter().any(|known| known.name == attribute.name))
    };
    let several =
        others.iter().enumerate().any(|(index, file)| others[..index].iter().any(|other| alike(file, other)));
    let groups: Vec<(Option<String>, Vec<&File>)> = if several {
        others.iter().map(|file| (Some(file.name.clone()), vec![file])).collect()
    } else {
        vec![(None, others.iter().collect())]
    };
    let mut roots = Vec::new();
    for (variant, own) in groups {
        let chosen: Vec<&File> = always.iter().chain(own).chain(&secrets).collect();
        overridden(import, &chosen);
        let blocks = chosen.iter().flat_map(|file| file.blocks.clone()).collect();
        let attributes: Vec<Vec<Attribute>> = chosen.iter().map(|file| file.attributes.clone()).collect();
        let module = Module::root(&import.library, &import.marks, folder, blocks, &attributes);
        roots.push(Root { folder: folder.to_owned(), module, variant });
    }
    roots
}

/// Those that are always read, those that are named on the command line, and those with secrets.
fn files(import: &mut Import<'_>, folder: &str) -> (Vec<File>, Vec<File>, Vec<File>) {
    let (mut always, mut others, mut secrets) = (Vec::new(), Vec::new(), Vec::new());
    let mut paths = import.files.inside(folder, ".tfvars");
    paths.sort_by_key(|path| !path.ends_with("/terraform.tfvars"));
    for path in paths {
        let own = path.rsplit('/').next().unwrap_or(&path).trim_end_matches(".tfvars").to_owned();
        let Some((attributes, blocks)) = import.variables(&path) else { continue };
        let file = File { name: own.trim_end_matches(".auto").to_owned(), attributes, blocks };
        if own == "terraform" || own.ends_with(".auto") {
            always.push(file);
        } else if own.contains("secret") || own.contains("vault") || own.contains("credential") {
            secrets.push(file);
        } else {
            others.push(file);
        }
    }
    for path in import.files.inside(folder, ".tfvars.json") {
        if let Some(attributes) = json(import, &path) {
            always.push(File { name: path, attributes, blocks: Vec::new() });
        }
    }
    (always, others, secrets)
}

/// A file of variables in JSON: the same as one in HCL.
fn json(import: &mut Import<'_>, path: &str) -> Option<Vec<Attribute>> {
    let text = import.read(path)?;
    let (tree, _) = parse::yaml(path, &text);
    let Some(tree) = tree else {
        import.note(Some(&Place::new(path, 1)), "the file was not read: it is no JSON");
        return None;
    };
    // JSON is written as HCL writes objects, line by line; so the lines stay.
    let mut attributes = Vec::new();
    for (key, value) in tree.entries() {
        let written = super::super::talos::as_json(value).to_string();
        let lines = "\n".repeat(value.place.line.saturating_sub(1));
        if let Ok((mut found, _)) = super::super::hcl::parse(path, &format!("{lines}{key} = {written}\n")) {
            attributes.append(&mut found);
        }
    }
    Some(attributes)
}

/// A value that a later file gives again is not used.
fn overridden(import: &mut Import<'_>, files: &[&File]) {
    for (index, file) in files.iter().enumerate() {
        for attribute in &file.attributes {
            let later = files[index + 1..]
                .iter()
                .find_map(|other| other.attributes.iter().find(|known| known.name == attribute.name));
            if let Some(later) = later {
                import.note(
                    Some(&attribute.place),
                    format!(
                        "`{}` is given again in {}:{}, which wins",
                        attribute.name, later.place.file, later.place.line
                    ),
                );
            }
        }
    }
}
