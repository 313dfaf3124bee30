//! What was applied, by whom, and which guardrails somebody bypassed and why: one line of JSON each, in a file that is only added to. Beside it, what
//! was begun and has not ended.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use strata_session::OWN_FOLDER;

/// The folder of reviews.
pub struct Audit {
    folder: PathBuf,
}

/// One line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line<'l> {
    pub time: String,
    /// `begun`, `applied`, `failed`, `break-glass`.
    pub event: &'l str,
    pub digest: &'l str,
    pub commit: &'l str,
    /// The commit that was checked out.
    pub merged: &'l str,
    /// Who ran it.
    pub who: &'l str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub approved_by: &'l [String],
    /// Why guardrails were bypassed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'l str>,
    /// What they said.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub bypassed: &'l [String],
}

impl Audit {
    pub fn of(root: &Path) -> Self {
        Self { folder: root.join(OWN_FOLDER).join("review") }
    }

    /// Adds a line, and returns when it is on the disk.
    pub fn write(&self, line: &Line<'_>) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).open(self.folder.join("audit.jsonl"))?;
        file.write_all(&bytes)?;
        file.sync_all()
    }

    /// Whether the apply of this plan was begun, and has not come to its end.
    pub fn is_begun(&self, digest: &str) -> bool {
        self.begun(digest).is_file()
    }

    pub fn begin(&self, digest: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        File::create(self.begun(digest))?.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }

    pub fn end(&self, digest: &str) -> io::Result<()> {
        match fs::remove_file(self.begun(digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn begun(&self, digest: &str) -> PathBuf {
        let name: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
        self.folder.join(format!("{name}.begun"))
    }
}
