//! The pages that are followed from top to bottom: every command in them is run, and what it prints is compared with the page.
//!
//! Of a page counts, in its order:
//!
//! - a block `console`: each line that begins with `$ ` is run by a shell, in the folder that the commands before it went to; what follows is what
//!   it prints, both streams. A line `…` stands for any lines, `…` within a line for any text. `$ strata sim` is not run: the
//!   simulator of the test stands for it, under the addresses that the page names.
//! - a block `yaml` whose first line is a comment with a path: the file is written there. With `# in PATH` its lines replace those between
//!   the first and the last of them in that file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use strata_sim::{Pace, SimOptions};
use strata_testkit::TestSim;

use crate::world::BINARY;

/// The pages that can be followed. A page here without a command fails.
const PAGES: &[&str] =
    &["docs/tutorial.md", "docs/howto/guests.md", "docs/howto/clusters.md", "docs/howto/recovery.md"];

#[test]
fn every_page_that_can_be_followed_leads_where_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let blocks = blocks(&text);
        assert!(blocks.iter().any(|block| block.kind == "console"), "`{page}` has no command");
        Reader::new(page).follow(&blocks);
    }
}

struct Block {
    kind: String,
    line: usize,
    lines: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let inner = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        found.push(Block {
            kind: kind.to_owned(),
            line: number + 1,
            lines: inner.map(str::to_owned).collect(),
        });
    }
    found
}

/// Somebody who does what a page says, in an empty folder.
struct Reader {
    page: String,
    sim: TestSim,
    folder: tempfile::TempDir,
    /// Where the shell is.
    at: PathBuf,
}

impl Reader {
    fn new(page: &str) -> Self {
        let sim = TestSim::with(SimOptions { pace: Pace::FAST, ..SimOptions::default() });
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(BINARY, folder.path().join("bin/strata")).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let at = folder.path().join("home");
        Self { page: page.to_owned(), sim, folder, at }
    }

    fn follow(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block.kind.as_str() {
                "console" => self.run_block(block),
                "yaml" => self.write_block(block),
                _ => {}
            }
        }
    }

    /// What stands in the page for the simulator, and what it has here.
    fn addresses(&self) -> [(&'static str, String); 2] {
        [
            ("https://127.0.0.1:18006", self.sim.endpoint()),
            ("http://127.0.0.1:18008", format!("http://{}", self.sim.gateway())),
        ]
    }

    fn write_block(&self, block: &Block) {
        let Some(path) = block.lines.first().and_then(|line| line.strip_prefix("# ")) else { return };
        let text = block.lines[1..].join("\n") + "\n";
        match path.strip_prefix("in ") {
            None => {
                let file = self.at.join(path);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Some(path) => self.replace_lines(&self.at.join(path), block),
        }
    }

    /// The lines of the file from the one that is equal to the block's first to the one that is equal to its last.
    fn replace_lines(&self, file: &Path, block: &Block) {
        let place = format!("{}:{}", self.page, block.line);
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{place}: {error}"));
        let new = &block.lines[1..];
        let lines: Vec<&str> = text.lines().collect();
        let at = |wanted: &String, from: usize| {
            let found = lines.iter().skip(from).position(|line| line == wanted);
            from + found.unwrap_or_else(|| panic!("{place}: no line `{wanted}` in the file:\n{text}"))
        };
        let first = at(&new[0], 0);
        let last = at(&new[new.len() - 1], first);
        let kept = |part: &[&str]| part.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let whole = [kept(&lines[..first]), new.to_vec(), kept(&lines[last + 1..])].concat();
        fs::write(file, whole.join("\n") + "\n").unwrap();
    }

    fn run_block(&mut self, block: &Block) {
        let mut lines = block.lines.iter().map(String::as_str).peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| {
                panic!("{}:{}: `{line}` follows no command", self.page, block.line);
            });
            let mut expected = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                expected.push(line);
            }
            if command == "strata sim" {
                continue;
            }
            let printed = self.shell(command);
            let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
            assert!(
                matches(&expected, &printed),
                "{}:{}: `{command}` printed something else:\n{}\n",
                self.page,
                block.line,
                printed.join("\n")
            );
        }
    }

    fn shell(&mut self, command: &str) -> String {
        let after = self.folder.path().join("after");
        // Both streams in one file, in the order in which they were written.
        let script = format!("exec 2>&1\n{command}\ncode=$?\npwd > '{}'\nexit $code", after.display());
        let path = format!("{}:{}", self.folder.path().join("bin").display(), env!("PATH"));
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(&self.at)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path().join("home"))
            .env("COLUMNS", "100")
            .output()
            .unwrap();
        self.at = fs::read_to_string(&after).unwrap().trim_end().into();
        let mut printed = String::from_utf8(output.stdout).unwrap();
        let settings = self.at.join("strata.yaml");
        for (named, real) in self.addresses() {
            if let Ok(text) = fs::read_to_string(&settings) {
                fs::write(&settings, text.replace(named, &real)).unwrap();
            }
            printed = printed.replace(&real, named);
        }
        printed.replace(self.folder.path().join("home").to_str().unwrap(), "~")
    }
}

/// Whether lines are those that a page shows.
fn matches(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        Some((line, rest)) => {
            printed.first().is_some_and(|other| line_matches(line, other)) && matches(rest, &printed[1..])
        }
    }
}

fn line_matches(expected: &str, printed: &str) -> bool {
    let Some((start, rest)) = expected.split_once('…') else { return expected == printed };
    let Some(printed) = printed.strip_prefix(start) else { return false };
    let ends = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
    ends.into_iter().any(|at| line_matches(rest, &printed[at..]))
}

#[test]
fn lines_left_out_stand_for_any() {
    assert!(matches(&["a", "…", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["…"], &[]));
    assert!(!matches(&["a", "…", "d"], &["a", "b"]));
    assert!(!matches(&[], &["a"]));
    assert!(line_matches("VM … on pve1", "VM 9100 on pve1"));
    assert!(!line_matches("VM … on pve1", "VM 9100 on pve2"));
}
