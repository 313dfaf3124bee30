//! What stands on a terminal after lines, frames and changes of its size.

use std::sync::{Arc, Mutex};

use anstream::adapter::strip_str;
use strata_live::{Live, Screen, Size};
use strata_resource::Layer;

use crate::{address, does, done, stack, starts};

/// A terminal as far as frames use one: lines, going up, clearing from there.
#[derive(Default)]
struct Glass {
    size: Option<Size>,
    lines: Vec<String>,
    row: usize,
}

impl Glass {
    fn write(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("\u{1b}[J") {
                self.lines.truncate(self.row);
                rest = after;
            } else if let Some(after) = rest.strip_prefix("\r\u{1b}[") {
                let (rows, after) = after.split_once('A').unwrap();
                self.row -= rows.parse::<usize>().unwrap();
                rest = after;
            } else {
                let (line, after) = rest.split_once('\n').unwrap();
                self.lines.truncate(self.row);
                self.lines.push(strip_str(line).to_string());
                self.row += 1;
                rest = after;
            }
        }
    }
}

#[derive(Clone, Default)]
struct Terminal {
    glass: Arc<Mutex<Glass>>,
    verbose: bool,
}

impl Screen for Terminal {
    fn size(&self) -> Option<Size> {
        self.glass.lock().unwrap().size
    }

    fn write(&self, text: &str) {
        self.glass.lock().unwrap().write(text);
    }

    fn is_verbose(&self) -> bool {
        self.verbose
    }
}

impl Terminal {
    fn shown(&self) -> Vec<String> {
        self.glass.lock().unwrap().lines.clone()
    }
}

fn view(size: Option<Size>) -> (Terminal, Live, tempfile::TempDir) {
    let glass = Glass { size, ..Glass::default() };
    let terminal = Terminal { glass: Arc::new(Mutex::new(glass)), verbose: false };
    let live = Live::new(Box::new(terminal.clone()));
    let folder = tempfile::tempdir().unwrap();
    let web = stack("web", Layer::Workloads, &[("vm", "web-1", &[]), ("vm", "web-2", &[0])]);
    live.plan([web], folder.path().join("times.json"));
    (terminal, live, folder)
}

#[test]
fn lines_scroll_above_the_frame_and_the_frame_is_there_once() {
    let (terminal, live, folder) = view(Some(Size { columns: 80, rows: 24 }));
    let (one, two) = (address("web", "vm", "web-1"), address("web", "vm", "web-2"));
    live.take("prod/web", &starts(0, &one));
    live.apart(|| terminal.write("a note of somebody else\n"));
    live.take("prod/web", &does(0, &one, "cloning"));
    let shown = terminal.shown();
    assert_eq!(shown[0], "a note of somebody else", "{shown:#?}");
    assert!(shown[1].starts_with("applying 0 of 2 done, 1 running"), "{shown:#?}");
    assert_eq!(shown.iter().filter(|line| line.contains("vm/web-1  0 s  cloning")).count(), 1, "{shown:#?}");
    assert!(shown.iter().any(|line| line.contains("vm/web-2  waits for web/vm/web-1")), "{shown:#?}");
    terminal.glass.lock().unwrap().size = Some(Size { columns: 80, rows: 5 });
    live.take("prod/web", &done(0, &one));
    let shown = terminal.shown();
    assert!(shown[1].starts_with("  ✓ web/vm/web-1  created"), "{shown:#?}");
    assert_eq!(shown.len(), 2 + 4, "it has become lower: {shown:#?}");
    live.take("prod/web", &starts(1, &two));
    live.take("prod/web", &done(1, &two));
    let lines = live.end();
    assert!(strip_str(&lines[0]).to_string().starts_with("done in"), "{lines:?}");
    assert_eq!(terminal.shown().len(), 3, "no frame is left: {:#?}", terminal.shown());
    let remembered = std::fs::read_to_string(folder.path().join("times.json")).unwrap();
    assert!(remembered.contains("vm created"), "{remembered}");
}

#[test]
fn a_narrower_terminal_has_broken_lines_and_they_are_cleared() {
    let (terminal, live, _folder) = view(Some(Size { columns: 80, rows: 24 }));
    live.take("prod/web", &starts(0, &address("web", "vm", "web-1")));
    let mut glass = terminal.glass.lock().unwrap();
    // What such a terminal does with the lines that it has: the frame's four longest lines become two each.
    let broken: Vec<String> = glass
        .lines
        .iter()
        .flat_map(|line| {
            let letters: Vec<char> = line.chars().collect();
            letters.chunks(40).map(|part| part.iter().collect::<String>()).collect::<Vec<_>>()
        })
        .collect();
    assert!(broken.len() > glass.lines.len());
    glass.row = broken.len();
    glass.lines = broken;
    glass.size = Some(Size { columns: 40, rows: 24 });
    drop(glass);
    assert!(live.end().iter().all(|line| strip_str(line).to_string().chars().count() <= 40));
    assert_eq!(terminal.shown(), Vec::<String>::new());
}

#[test]
fn without_a_terminal_there_are_lines_alone() {
    let (terminal, live, folder) = view(None);
    let one = address("web", "vm", "web-1");
    live.take("prod/web", &starts(0, &one));
    live.take("prod/web", &does(0, &one, "cloning"));
    live.take("prod/web", &done(0, &one));
    let shown = terminal.shown();
    assert_eq!(shown[0], "  web/vm/web-1: creating");
    assert!(shown[1].starts_with("  ✓ web/vm/web-1  created "), "{shown:#?}");
    assert_eq!(shown.len(), 2, "{shown:#?}");
    assert!(live.end().is_empty());
    assert!(!folder.path().join("times.json").exists());
}

#[test]
fn with_v_every_change_of_what_a_step_does_is_told_once() {
    let terminal = Terminal { verbose: true, ..Terminal::default() };
    let live = Live::new(Box::new(terminal.clone()));
    let one = address("web", "vm", "web-1");
    live.take("prod/web", &starts(0, &one));
    for doing in ["cloning", "cloning", "starting"] {
        live.take("prod/web", &does(0, &one, doing));
    }
    assert_eq!(terminal.shown()[1..], ["  web/vm/web-1: cloning", "  web/vm/web-1: starting"]);
}
