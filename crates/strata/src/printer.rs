//! The only place that writes to the terminal.
//!
//! Results go to standard output, everything else to standard error. With `--json` standard output carries one JSON object a line
//! and nothing else.

use std::io::{IsTerminal, Write};

use strata_engine::Clock;
use strata_events::{Event, Subject};
use strata_live::{Live, Screen, Size};

#[derive(Clone, Copy)]
pub(crate) struct Printer {
    json: bool,
    verbose: bool,
    clock: &'static dyn Clock,
    /// What is drawn while a run goes on; every line that is printed goes above it.
    live: &'static Live,
}

/// Standard error, as far as it is a terminal.
struct Terminal {
    draws: bool,
    verbose: bool,
}

impl Screen for Terminal {
    fn size(&self) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok().filter(|_| self.draws)?;
        let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
        (columns > 0 && rows > 0).then_some(Size { columns, rows })
    }

    fn write(&self, text: &str) {
        let _ = write!(anstream::stderr(), "{text}");
    }

    fn is_verbose(&self) -> bool {
        self.verbose
    }
}

impl Printer {
    pub(crate) fn new(json: bool, verbose: bool, no_color: bool, clock: &'static dyn Clock) -> Self {
        if no_color || json {
            anstream::ColorChoice::Never.write_global();
        }
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let draws = !json && !is_dumb && std::io::stderr().is_terminal();
        // One for each process: it ends with it.
        let live = Box::leak(Box::new(Live::new(Box::new(Terminal { draws, verbose }))));
        Self { json, verbose, clock, live }
    }

    pub(crate) fn live(self) -> &'static Live {
        self.live
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    pub(crate) fn is_verbose(self) -> bool {
        self.verbose
    }

    /// Whether the result has no colours, for programs that ask nobody.
    pub(crate) fn is_plain(self) -> bool {
        anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never
    }

    /// How wide the result may be: the terminal, or as wide as it likes.
    pub(crate) fn columns(self) -> usize {
        let stdout = std::io::stdout();
        match rustix::termios::tcgetwinsize(&stdout) {
            Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
            _ => usize::MAX,
        }
    }

    /// A line of the result.
    pub(crate) fn line(self, text: impl AsRef<str>) {
        if !self.json {
            // A closed pipe is the reader's wish, not our error.
            self.live.apart(|| _ = writeln!(anstream::stdout(), "{}", text.as_ref()));
        }
    }

    /// Raw text of the result, where it is a document in a format of its own.
    pub(crate) fn raw(self, text: &str) {
        let _ = write!(anstream::stdout(), "{text}");
        let _ = std::io::stdout().flush();
    }

    /// The bytes of the result, as they are. Unlike a line, a file that they do not fit into is an error.
    pub(crate) fn bytes(self, bytes: &[u8]) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// One JSON object a line, about the whole run; nothing without `--json`.
    pub(crate) fn event(self, event: &Event<'_>) {
        self.write_event(None, event);
    }

    /// The same, about the stack whose state has this key.
    pub(crate) fn event_of(self, key: &str, event: &Event<'_>) {
        self.write_event(Some(&Subject::of_key(key)), event);
    }

    fn write_event(self, subject: Option<&Subject>, event: &Event<'_>) {
        if self.json
            && let Ok(line) = strata_events::line(event, subject, self.clock.now())
        {
            // Lines of stacks that run at the same time are written whole: standard output is locked for each.
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    /// What a person should know while the command runs.
    pub(crate) fn note(self, text: impl AsRef<str>) {
        self.live.apart(|| _ = writeln!(anstream::stderr(), "{}", text.as_ref()));
    }

    pub(crate) fn detail(self, text: impl AsRef<str>) {
        if self.verbose {
            self.note(text);
        }
    }
}
