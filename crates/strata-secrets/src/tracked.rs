//! The files that go into a repository: what git tracks, or without git whatever is not ignored.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strata_diagnostics::{LARGEST_FILE, read_text_file};

/// Files with paths below their root.
pub struct Tracked {
    pub root: PathBuf,
    pub files: Vec<PathBuf>,
    /// Those of git whose content in the index is not the one on the disk: a commit takes the one in the index.
    pub staged: Vec<PathBuf>,
}

impl Tracked {
    pub fn below(folder: &Path) -> Self {
        Self::by_git(folder).unwrap_or_else(|| {
            let mut files = Vec::new();
            walk(folder, Path::new(""), &Ignored::read(folder), &mut files);
            files.sort();
            Self { root: folder.to_owned(), files, staged: Vec::new() }
        })
    }

    fn by_git(folder: &Path) -> Option<Self> {
        let top = git(folder, &["rev-parse", "--show-toplevel"])?;
        let root = PathBuf::from(OsStr::from_bytes(top.strip_suffix(b"\n")?));
        let files = paths(&git(&root, &["ls-files", "-z"])?);
        let staged = paths(&git(&root, &["diff-files", "--name-only", "-z"])?);
        Some(Self { root, files, staged })
    }

    /// The content of a file as the next commit has it.
    pub fn in_index(&self, file: &Path) -> Option<Vec<u8>> {
        git(&self.root, &["cat-file", "blob", &format!(":{}", file.to_str()?)])
    }
}

/// What git does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    NoGit,
    Tracked,
    Untracked,
    Ignored,
}

pub fn tracking(path: &Path) -> Tracking {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) else {
        return Tracking::NoGit;
    };
    if git(folder, &["rev-parse", "--show-toplevel"]).is_none() {
        Tracking::NoGit
    } else if git(folder, &["ls-files", "--error-unmatch", "--", name]).is_some() {
        Tracking::Tracked
    } else if git(folder, &["check-ignore", "--quiet", "--", name]).is_some() {
        Tracking::Ignored
    } else {
        Tracking::Untracked
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

fn paths(listed: &[u8]) -> Vec<PathBuf> {
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

fn walk(root: &Path, below: &Path, ignored: &Ignored, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        if ignored.has(&path) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(root, &path, ignored, files),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
}

/// The simple lines of the `.gitignore` at the root: names, paths, and `*.ending`.
struct Ignored(Vec<String>);

impl Ignored {
    fn read(root: &Path) -> Self {
        let text = read_text_file(&root.join(".gitignore"), LARGEST_FILE).unwrap_or_default();
        let lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
        let lines = lines.map(|line| line.trim_end_matches('/').to_owned());
        Self(lines.chain([".git".to_owned()]).collect())
    }

    fn has(&self, path: &Path) -> bool {
        let whole = path.to_string_lossy();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.0.iter().any(|line| match line.strip_prefix('*') {
            Some(ending) => name.ends_with(ending),
            None if line.contains('/') => line.trim_start_matches('/') == whole,
            None => *line == name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_git_simple_ignores_hold() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["a.yaml", ".strata/state", "age.key", "x/b.plan", "x/c", ".git/config"] {
            fs::create_dir_all(folder.path().join(file).parent().unwrap()).unwrap();
            fs::write(folder.path().join(file), "x").unwrap();
        }
        fs::write(folder.path().join(".gitignore"), "# mine\n.strata/\nage.key\n*.plan\n").unwrap();
        let mut files = Vec::new();
        walk(folder.path(), Path::new(""), &Ignored::read(folder.path()), &mut files);
        files.sort();
        assert_eq!(files, [".gitignore", "a.yaml", "x/c"].map(PathBuf::from));
    }
}
