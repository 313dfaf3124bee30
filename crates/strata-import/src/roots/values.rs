//! The files of variables of a root, in the order in which a later one wins; and roots that have several sets of them.

use std::collections::BTreeMap;

use strata_source::world::join;

use super::super::files::folder_of;
use super::super::hcl::{Attribute, Block};
use super::super::module::Module;
use super::super::tree::{SourceLine, is_example};
use super::super::{Import, parse};
use super::Root;

struct File {
    name: String,
    attributes: Vec<Attribute>,
    blocks: Vec<Block>,
}

/// Folders beside the code that hold files of variables only.
const FOLDERS: [&str; 8] =
    ["environments", "envs", "env", "tfvars", "vars", "workspaces", "variables", "inventories"];

/// The files of a root.
#[derive(Default)]
struct RootFiles {
    /// Those that are always read.
    always: Vec<File>,
    /// Those that are named on the command line.
    others: Vec<File>,
    secrets: Vec<File>,
}

impl RootFiles {
    fn put(&mut self, file: File, always: bool) {
        let hidden = ["secret", "vault", "credential"].iter().any(|word| file.name.contains(word));
        if always {
            self.always.push(file);
        } else if hidden {
            self.secrets.push(file);
        } else {
            self.others.push(file);
        }
    }
}

/// A root for each set of values that its folder has.
pub(super) fn roots<'w>(import: &mut Import<'w>, folder: &str) -> Vec<Root<'w>> {
    let beside = beside(import, folder);
    let below = below(import, folder);
    // Files that say the same things in other words are for different places.
    let alike = |one: &File, other: &File| {
        one.attributes
            .iter()
            .any(|attribute| other.attributes.iter().any(|known| known.name == attribute.name))
    };
    let others = &beside.others;
    let several =
        others.iter().enumerate().any(|(index, file)| others[..index].iter().any(|other| alike(file, other)));
    let mut groups: Vec<(Option<String>, Vec<&File>)> = Vec::new();
    if several {
        groups.extend(others.iter().map(|file| (Some(file.name.clone()), vec![file])));
    } else if below.is_empty() || !others.is_empty() {
        groups.push((None, others.iter().collect()));
    }
    for (environment, found) in &below {
        let files = found.always.iter().chain(&found.others).chain(&found.secrets).collect();
        groups.push((Some(environment.clone()), files));
    }
    let mut roots = Vec::new();
    for (variant, own) in groups {
        let chosen: Vec<&File> = beside.always.iter().chain(own).chain(&beside.secrets).collect();
        overridden(import, &chosen);
        let blocks = chosen.iter().flat_map(|file| file.blocks.clone()).collect();
        let attributes: Vec<Vec<Attribute>> = chosen.iter().map(|file| file.attributes.clone()).collect();
        let module = Module::root(&import.library, &import.marks, folder, blocks, &attributes);
        roots.push(Root { folder: folder.to_owned(), module, variant });
    }
    roots
}

/// Those in the folder of the code.
fn beside(import: &mut Import<'_>, folder: &str) -> RootFiles {
    let mut found = RootFiles::default();
    let mut paths = import.files.inside(folder, ".tfvars");
    paths.sort_by_key(|path| !path.ends_with("/terraform.tfvars"));
    for path in paths.into_iter().filter(|path| !is_example(path)) {
        let own = stem(&path);
        let Some((attributes, blocks)) = import.variables(&path) else { continue };
        let always = own == "terraform" || own.ends_with(".auto");
        found.put(File { name: own.trim_end_matches(".auto").to_owned(), attributes, blocks }, always);
    }
    for path in import.files.inside(folder, ".tfvars.json") {
        if let Some(attributes) = json(import, &path) {
            found.always.push(File { name: path, attributes, blocks: Vec::new() });
        }
    }
    examples(import, folder, &mut found);
    found
}

/// The real file is often kept out of git: then the example beside it says what no other file does, but for secrets.
fn examples(import: &mut Import<'_>, folder: &str, found: &mut RootFiles) {
    for path in import.files.inside(folder, "") {
        if !is_example(&path) || path.ends_with(".json") {
            continue;
        }
        let Some((mut attributes, _)) = import.variables(&path) else { continue };
        let known = |name: &str| {
            let files = found.always.iter().chain(&found.others).chain(&found.secrets);
            files.flat_map(|file| &file.attributes).any(|attribute| attribute.name == name)
        };
        attributes.retain(|attribute| !known(&attribute.name) && !is_secret(&attribute.name));
        if attributes.is_empty() {
            continue;
        }
        import.note(
            Some(&SourceLine::new(&path, 1)),
            "the real file is not here: what no other file says was taken from this example, check it",
        );
        found.always.insert(0, File { name: stem(&path), attributes, blocks: Vec::new() });
    }
}

/// An example has no real ones.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let public = ["ssh", "public"].iter().any(|word| name.contains(word));
    ["password", "secret", "token"].iter().any(|word| name.contains(word)) || name.ends_with("key") && !public
}

/// Those in folders below that hold no code, by environment: `environments/dev.tfvars`, `envs/dev/terraform.tfvars`.
fn below(import: &mut Import<'_>, folder: &str) -> BTreeMap<String, RootFiles> {
    let mut all: BTreeMap<String, RootFiles> = BTreeMap::new();
    let roots = import.files.folders_with_code();
    for inner in FOLDERS {
        let inner = join(folder, inner);
        for path in import.files.below(&inner) {
            let at = folder_of(&path);
            if !path.ends_with(".tfvars")
                || is_example(&path)
                || roots.contains(at)
                || import.files.was_read(&path)
            {
                continue;
            }
            let own = stem(&path);
            let environment = if at == inner {
                own.split('.').next().unwrap_or(&own)
            } else {
                at.rsplit('/').next().unwrap_or(at)
            };
            let environment = environment.to_owned();
            let Some((attributes, blocks)) = import.variables(&path) else { continue };
            let file = File { name: own.clone(), attributes, blocks };
            all.entry(environment).or_default().put(file, own == "terraform");
        }
    }
    if all.is_empty() {
        elsewhere(import, folder, &mut all);
    }
    // Secrets alone are no environment.
    all.retain(|_, found| !found.always.is_empty() || !found.others.is_empty());
    all
}

/// Those in folders beside the code, or in one that is above both: most of what they say is what the code asks for.
fn elsewhere(import: &mut Import<'_>, folder: &str, all: &mut BTreeMap<String, RootFiles>) {
    let blocks = import.library.folder(folder);
    let declared = |name: &str| blocks.iter().any(|block| block.kind == "variable" && block.label(0) == name);
    let asked = blocks.iter().any(|block| block.kind == "variable" && block.attribute("default").is_none());
    let own = import.files.inside(folder, ".tfvars").iter().any(|path| !is_example(path));
    if folder.is_empty() || !asked || own {
        return;
    }
    let above = folder_of(folder).to_owned();
    let roots = import.files.folders_with_code();
    let files = if above.is_empty() { import.files.inside_all() } else { import.files.below(&above) };
    for path in files {
        let at = folder_of(&path).to_owned();
        let inside = at == folder || at.starts_with(&format!("{folder}/"));
        let as_json = path.ends_with(".tfvars.json");
        if !path.ends_with(".tfvars") && !as_json || is_example(&path) || inside || roots.contains(&at) {
            continue;
        }
        let found = if as_json {
            json(import, &path).map(|attributes| (attributes, Vec::new()))
        } else {
            let text = import.read_opened(&path);
            text.and_then(|text| super::super::hcl::parse(&path, &text).ok())
        };
        let Some((attributes, blocks)) = found else { continue };
        let known = attributes.iter().filter(|attribute| declared(&attribute.name)).count();
        if known == 0 || known * 2 <= attributes.len() {
            continue;
        }
        let own = stem(&path);
        let general = ["terraform", "variables", "vars", "common", "all", "values"];
        let environment = match own.split('.').next() {
            Some(first) if !general.contains(&first) => first.to_owned(),
            _ => at.rsplit('/').next().unwrap_or(&at).to_owned(),
        };
        import.note(
            Some(&SourceLine::new(&path, 1)),
            format!("it says what the code in `{folder}` asks for, and was taken for its file of variables"),
        );
        all.entry(environment)
            .or_default()
            .put(File { name: own.clone(), attributes, blocks }, own == "terraform");
    }
}

fn stem(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".json").trim_end_matches(".tfvars").to_owned()
}

/// A file of variables in JSON: the same as one in HCL.
fn json(import: &mut Import<'_>, path: &str) -> Option<Vec<Attribute>> {
    let text = import.read(path)?;
    let (tree, _) = parse::yaml(path, &text);
    let Some(tree) = tree else {
        import.note(Some(&SourceLine::new(path, 1)), "the file was not read: it is no JSON");
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
