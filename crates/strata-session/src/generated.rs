//! What is rendered beside what is in a repository: missing, stale, edited by somebody, no longer wanted.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_tofu::{FileOrigin, Files, file_origin};

/// How one file compares with what is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    Current,
    Missing,
    Stale,
    /// As it was rendered, but for its line ends.
    LineEnds,
    /// A generated file that was edited.
    Edited,
    /// Written by hand: not ours.
    Kept,
    /// Generated once, and wanted no more.
    Superfluous,
}

/// Compares every rendered file with the repository at `root`; with all of them, also finds what nothing renders any more. An error names its
/// file.
pub fn compare(
    root: &Path,
    files: &Files,
    whole: bool,
) -> Result<Vec<(String, FileStatus)>, (String, io::Error)> {
    let mut compared = Vec::new();
    for (path, wanted) in files.iter() {
        let status = match read_text_file(&root.join(path), LARGEST_FILE) {
            Ok(text) if text == wanted => FileStatus::Current,
            // A checkout may have given it the line ends of Windows: nothing of that is anybody's work.
            Ok(text) => match file_origin(&text.replace("\r\n", "\n")) {
                FileOrigin::Generated if text.contains("\r\n") => FileStatus::LineEnds,
                FileOrigin::Generated => FileStatus::Stale,
                FileOrigin::Edited => FileStatus::Edited,
                FileOrigin::HandWritten => FileStatus::Kept,
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => FileStatus::Missing,
            Err(error) => return Err((path.to_owned(), error)),
        };
        compared.push((path.to_owned(), status));
    }
    // What a part of the stacks does not want, another may.
    if whole {
        let wanted: BTreeSet<&str> = files.iter().map(|(path, _)| path).collect();
        for folder in ["modules", "stacks", "clusters", "infrastructure", "talos"] {
            superfluous(root, folder, 0, &wanted, &mut compared);
        }
    }
    Ok(compared)
}

/// Generated files that nothing renders any more.
fn superfluous(
    root: &Path,
    folder: &str,
    depth: usize,
    wanted: &BTreeSet<&str>,
    compared: &mut Vec<(String, FileStatus)>,
) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return };
    let mut names: Vec<(String, bool)> = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?.is_dir())))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    names.sort();
    for (name, is_folder) in names {
        let path = format!("{folder}/{name}");
        if is_folder && depth < 8 {
            superfluous(root, &path, depth + 1, wanted, compared);
        } else if !wanted.contains(path.as_str())
            && !name.starts_with("taken_over.")
            && [".tf", ".tfvars", "README.md", "talconfig.yaml"].iter().any(|end| name.ends_with(end))
            && read_text_file(&root.join(&path), LARGEST_FILE)
                .is_ok_and(|text| file_origin(&text) == FileOrigin::Generated)
        {
            compared.push((path, FileStatus::Superfluous));
        }
    }
}

/// Whether a place is in the repository: a link must not lead the pen to somewhere else on this machine.
pub fn is_inside(root: &Path, place: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let target = real(place).or_else(|| place.parent().and_then(real));
    real(root).zip(target).is_some_and(|(root, target)| target.starts_with(&root))
}
