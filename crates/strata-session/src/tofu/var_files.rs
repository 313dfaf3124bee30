//! The files of variables of a stack. Encrypted ones go through a pipe that only OpenTofu reads.

use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::thread::JoinHandle;

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_secret::SecretBytes;
use strata_secrets::vault;

use crate::error::SessionError;
use crate::workspace::Workspace;

/// A file of variables as OpenTofu is told of it.
pub(super) enum VarFile {
    /// Its name in the folder.
    Plain(String),
    /// What was in an encrypted one.
    Secret(SecretBytes),
}

/// The files that OpenTofu does not take by itself. Those of other environments are left out.
pub(super) fn find(
    workspace: &Workspace,
    folder: &Path,
    own: &str,
    environments: &[&str],
) -> Result<Vec<VarFile>, SessionError> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| SessionError::failed(format!("cannot read `{}`: {error}", folder.display())))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".tfvars"))
        .collect();
    names.sort();
    let mut files = Vec::new();
    for name in names {
        let words: Vec<&str> = name.trim_end_matches(".tfvars").split('.').collect();
        let other = environments.iter().any(|other| *other != own && words.contains(other));
        let path = folder.join(&name);
        let content = read_file(&path, LARGEST_FILE)
            .map_err(|error| SessionError::failed(format!("cannot read `{}`: {error}", path.display())))?;
        if vault::is_vault(&content) {
            if !other {
                let plain = workspace.open_vault(&content).map_err(|reason| {
                    SessionError::failed(format!("cannot open `{}`: {reason}", path.display()))
                })?;
                workspace.keep_secret(&plain);
                files.push(VarFile::Secret(plain));
            }
        } else if !other && name != "terraform.tfvars" && !name.ends_with(".auto.tfvars") {
            files.push(VarFile::Plain(name));
        }
    }
    Ok(files)
}

/// Pipes that a child inherits, and who fills them.
#[derive(Default)]
pub(super) struct Pipes {
    ends: Vec<OwnedFd>,
    writers: Vec<JoinHandle<()>>,
}

impl Pipes {
    /// The argument that names a file of variables.
    pub(super) fn argument(&mut self, file: &VarFile) -> Result<String, SessionError> {
        match file {
            VarFile::Plain(name) => Ok(format!("-var-file={name}")),
            VarFile::Secret(content) => {
                // Not closed on exec: the child reads it by its number.
                let (read, write) = rustix::pipe::pipe()
                    .map_err(|error| SessionError::failed(format!("cannot make a pipe: {error}")))?;
                // The writing end is ours alone, or the child would never see the end of it.
                rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::CLOEXEC)
                    .map_err(|error| SessionError::failed(format!("cannot keep a pipe: {error}")))?;
                let argument = format!("-var-file=/dev/fd/{}", read.as_raw_fd());
                let content = content.clone();
                self.writers.push(std::thread::spawn(move || {
                    // A child that ended without reading is told by its exit code.
                    let _ = std::fs::File::from(write).write_all(content.expose());
                }));
                self.ends.push(read);
                Ok(argument)
            }
        }
    }

    /// After the child has started it has its own copies.
    pub(super) fn release(self) {
        drop(self.ends);
        // The writers end with their pipes; nobody has to wait for them.
        drop(self.writers);
    }
}
