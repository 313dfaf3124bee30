//! `strata import`: the repositories that users come from, as a repository of Strata.
//!
//! [`import`] reads a folder of code and gives back the files of the new repository, the secrets that must be encrypted and the notes on
//! what was not carried over ([`Imported`]). [`built`] reads a state of OpenTofu: what is built, to be taken over, with or without a
//! repository. Which families of repositories are read is one list, `importer.rs`.
//!
//! What is there is read in its own words; what cannot be carried over is reported with file and line, and the rest is imported. The
//! result is loaded as Strata loads any repository, and what that refuses is left out and reported as well. Nothing here runs a program,
//! writes a file or keeps a secret: files go in, files come out.
//!
//! ```
//! use strata_import::import;
//! use strata_source::world::Memory;
//!
//! let code = "provider \"proxmox\" {\n  endpoint = \"https://192.0.2.10:8006\"\n}\n\
//!     resource \"proxmox_virtual_environment_vm\" \"web\" {\n  name = \"web\"\n  node_name = \"pve1\"\n  vm_id = 100\n}\n";
//! let imported = import(&Memory::new().file("main.tf", code), "1a2b3c4d5e", None);
//! assert_eq!(imported.found, ["OpenTofu with the Proxmox provider"]);
//! assert!(imported.files.contains_key("strata.yaml"));
//! assert!(imported.files.values().any(|text| text.contains("web:")));
//! ```

#![warn(missing_docs)]

mod backend;
mod claims;
mod clusters;
mod context;
mod environments;
mod eval;
mod files;
mod firewall;
mod flat;
mod functions;
mod gotemplate;
mod groups;
mod guest;
mod hcl;
mod host;
mod importer;
mod kept;
mod layered;
mod merge;
mod model;
mod module;
mod output;
mod parse;
mod provider_talos;
mod records;
mod roots;
mod short_form;
mod stacks;
mod talconfig;
mod talos;
mod telmate;
pub mod tofu_state;
mod topf;
mod tree;
mod unused;
mod validation;

use std::collections::BTreeMap;

use strata_source::world::World;

use context::{Import, base, is_scalar, is_version, name, with_v};
use importer::IMPORTERS;
use output::Guests;
pub use tree::SourceLine;

/// What stands for an API token that nobody wrote down.
pub const NO_TOKEN: &str = "user@realm!name=00000000-0000-0000-0000-000000000000";

/// The comment behind what was written down in place of what nobody said.
pub const STANDS_IN: &str = "stands in for the real one";

/// Something that was not carried over as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands, if it is one place.
    pub place: Option<SourceLine>,
    /// What was not carried over, and what to do about it.
    pub message: String,
}

/// What an import came to.
#[derive(Debug, Default)]
pub struct Imported {
    /// By path from the root of the new repository.
    pub files: BTreeMap<String, String>,
    /// What was not carried over as it is.
    pub notes: Vec<Note>,
    /// Secrets by name, to be encrypted.
    pub secrets: BTreeMap<String, String>,
    /// The file that they go to: another one where the repository has its own of the usual name.
    pub secrets_file: String,
    /// The kinds of source that were found.
    pub found: Vec<&'static str>,
}

/// Opens a file that ansible-vault encrypted.
pub type OpenVault<'w> = &'w dyn Fn(&str, &[u8]) -> Result<Vec<u8>, String>;

/// Reads a folder. `repository` is the id of the new repository.
pub fn import<'w>(world: &'w dyn World, repository: &str, open: Option<OpenVault<'w>>) -> Imported {
    let mut import = Import::new(world, open);
    for importer in IMPORTERS {
        importer.import(&mut import);
    }
    merge::merge(&mut import);
    let problems = import.library.problems.take();
    for (place, reason) in problems {
        import.note(Some(&place), reason);
    }
    if import.imported.found.is_empty() {
        return import.imported;
    }
    let read = import.library.read.take();
    read.iter().for_each(|path| import.files.read(path));
    import.report();
    unused::report(&mut import);
    import.unread();
    import.settings(repository);
    short_form::shorten(&mut import);
    validation::leave_out_refused(&mut import);
    let mut imported = import.imported;
    imported.notes.sort_by(|one, other| one.place.cmp(&other.place));
    imported.notes = together(imported.notes);
    // What nobody has to do anything about comes last.
    imported.notes.extend(import.passed_by);
    imported
}

/// Notes that say the same of several machines at one place, as one.
fn together(notes: Vec<Note>) -> Vec<Note> {
    // The name that a message begins with, and the rest of it.
    fn parts(message: &str) -> Option<(&str, &str)> {
        message.strip_prefix('`')?.split_once('`')
    }
    let mut found: Vec<(Note, Vec<String>)> = Vec::new();
    for note in notes {
        let same =
            found.iter_mut().rev().take_while(|(known, _)| known.place == note.place).find(|(known, _)| {
                let pair = parts(&known.message).zip(parts(&note.message));
                pair.is_some_and(|((_, one), (_, other))| one == other)
            });
        match (same, parts(&note.message)) {
            (Some((_, others)), Some((own, _))) => others.push(format!("`{own}`")),
            _ => found.push((note, Vec::new())),
        }
    }
    let whole = |(note, others): (Note, Vec<String>)| match parts(&note.message) {
        Some((own, rest)) if !others.is_empty() => {
            let message = format!("`{own}` (and {}){rest}", others.join(", "));
            Note { place: note.place, message }
        }
        _ => note,
    };
    found.into_iter().map(whole).collect()
}
