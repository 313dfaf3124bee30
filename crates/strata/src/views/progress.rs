//! The live display of an apply: bars on a terminal, plain lines elsewhere, events with `--json`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use strata_engine::{Event, EventSink, Resolution, StepAction};
use strata_resource::{Address, Kind, Shown};

use crate::printer::Printer;
use crate::style::{self, paint};

/// Where nobody sees a bar, what a step has been at for this long is told, once.
const QUIET: Duration = Duration::from_secs(5);

/// The display of a run. Its stacks share it.
pub(crate) struct Display {
    printer: Printer,
    live: Option<MultiProgress>,
    running: Arc<Mutex<Steps>>,
    /// That the run stops was said.
    stopping: Once,
}

/// The part of the display that is about one stack.
pub(crate) struct Progress {
    display: Arc<Display>,
    /// The key of the stack whose steps they are.
    key: String,
}

/// By the key of their stack, and their place in its plan.
type Steps = BTreeMap<(String, usize), Running>;

struct Running {
    since: Instant,
    name: String,
    doing: String,
    /// Since when it does that, and whether a line said so.
    changed: Instant,
    told: bool,
    bar: Option<ProgressBar>,
}

impl Running {
    /// What is to be told of it now.
    fn overdue(&mut self) -> Option<String> {
        if self.told || self.doing.is_empty() || self.changed.elapsed() < QUIET {
            return None;
        }
        self.told = true;
        Some(format!("  {}: {}", self.name, self.doing))
    }
}

/// Tells of steps that wait, as long as there is somebody whose steps they are.
fn report_waits(printer: Printer, running: &Arc<Mutex<Steps>>) {
    let running = Arc::downgrade(running);
    std::thread::spawn(move || {
        while let Some(steps) = running.upgrade() {
            let lines: Vec<String> = steps
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .values_mut()
                .filter_map(Running::overdue)
                .collect();
            drop(steps);
            lines.into_iter().for_each(|line| printer.note(line));
            std::thread::sleep(Duration::from_millis(500));
        }
    });
}

impl Display {
    pub(crate) fn new(printer: Printer) -> Self {
        let live = (std::io::stderr().is_terminal() && !printer.is_json()).then(MultiProgress::new);
        let running = Arc::default();
        if live.is_none() && !printer.is_json() {
            report_waits(printer, &running);
        }
        Self { printer, live, running, stopping: Once::new() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Steps> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, text: String) {
        match &self.live {
            Some(live) => {
                let _ = live.println(text);
            }
            None => self.printer.note(text),
        }
    }
}

impl Progress {
    pub(crate) fn new(display: &Arc<Display>, key: &str) -> Self {
        Self { display: Arc::clone(display), key: key.to_owned() }
    }

    fn say(&self, text: String) {
        self.display.say(text);
    }

    fn step(&self, step: usize) -> (String, usize) {
        (self.key.clone(), step)
    }

    fn begin(&self, step: usize, address: &Address, action: StepAction) {
        let name = &address.to_string();
        let doing = verb(address.kind(), action).0;
        let bar = self.display.live.as_ref().map(|live| {
            let bar = live.add(ProgressBar::new_spinner());
            let template = "  {spinner:.cyan} {prefix}  {wide_msg:.dim} {elapsed:.dim}";
            bar.set_style(
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar.set_prefix(name.to_owned());
            bar.set_message(doing);
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            self.say(format!("  {name}: {doing}"));
        }
        let now = Instant::now();
        let (name, doing) = (name.to_owned(), String::new());
        let running = Running { since: now, name, doing, changed: now, told: false, bar };
        self.display.lock().insert(self.step(step), running);
    }

    fn doing(&self, step: usize, name: &str, doing: &str) {
        let mut running = self.display.lock();
        let Some(entry) = running.get_mut(&self.step(step)) else {
            drop(running);
            return self.say(format!("  {name}: {doing}"));
        };
        if entry.doing == doing {
            return;
        }
        doing.clone_into(&mut entry.doing);
        (entry.changed, entry.told) = (Instant::now(), self.display.printer.is_verbose());
        match &entry.bar {
            Some(bar) => bar.set_message(doing.to_owned()),
            None => {
                drop(running);
                self.display.printer.detail(format!("  {name}: {doing}"));
            }
        }
    }

    fn end(&self, step: usize) -> String {
        let Some(running) = self.display.lock().remove(&self.step(step)) else { return String::new() };
        if let Some(bar) = running.bar {
            bar.finish_and_clear();
        }
        format!("{:.1} s", running.since.elapsed().as_secs_f64())
    }
}

/// What an action is called while it runs and when it is done.
fn verb(kind: Kind, action: StepAction) -> (&'static str, &'static str) {
    match action {
        StepAction::Create => ("creating", "created"),
        StepAction::Update => ("changing", "changed"),
        StepAction::Record => ("recording", "recorded"),
        StepAction::Forget => ("dropping from the state", "dropped from the state"),
        StepAction::Delete => kind.table().shown.removing,
        StepAction::DeleteFormer => Shown::USUAL.removing,
    }
}

impl EventSink for Progress {
    fn emit(&self, event: Event) {
        if self.display.printer.is_json() {
            let event = strata_events::Event::Run(Box::new(event));
            return self.display.printer.event_of(&self.key, &event);
        }
        match event {
            Event::WaitingOut { key, seconds } => self.say(format!(
                "  {} {key}: the run that held the lock is not heard of any more; waiting {seconds} s, in which a request of it may still \
                 arrive",
                paint(style::WARNING, "!"),
            )),
            Event::ReportAwaited { address, seconds } => {
                self.say(format!("  {address}: waiting for the address that it was given, at most {seconds} s"));
            }
            Event::ReportMissing { address, why } => self.say(format!(
                "  {} {address}: no output can have its address: {why}\n    hint: the next `strata apply` asks again",
                paint(style::WARNING, "!"),
            )),
            Event::RecoveryStarted { entry } => self.say(format!(
                "  {} {}: an interrupted run began to {} it, looking what came of that",
                paint(style::WARNING, "!"),
                entry.address,
                entry.doing()
            )),
            Event::RecoveryDone { resolved } => {
                let what = match resolved.resolution {
                    Resolution::Finished => "it had been done",
                    Resolution::Adopted => "it exists and is managed, the plan completes it",
                    Resolution::NotDone => "nothing had been done",
                    Resolution::LeftUnmanaged => "something unmanaged has its identity, left alone",
                    Resolution::StaysOpen => "what came of it cannot be seen: it stays open, the rest goes on",
                };
                self.say(format!("  {} {}: {what}", paint(style::CREATE, "✓"), resolved.address));
            }
            Event::StepStarted { step, address, action, .. } if action.is_remote() => {
                self.begin(step, &address, action);
            }
            Event::StepProgress { step, address, doing } => self.doing(step, &address.to_string(), &doing),
            Event::StepDone { step, address, action } if action.is_remote() => {
                let took = self.end(step);
                let took = paint(style::FAINT, took);
                let done = verb(address.kind(), action).1;
                self.say(format!("  {} {address}  {done} {took}", paint(style::CREATE, "✓")));
            }
            Event::StepWarning { address, warning, .. } => {
                self.say(format!("  {} {address}  {warning}", paint(style::WARNING, "!")));
            }
            Event::StepFailed { step, address, error, .. } => {
                let took = self.end(step);
                let mark = paint(style::ERROR, "✗");
                self.say(format!("  {mark} {address}  {} {}", error.message, paint(style::FAINT, took)));
            }
            Event::StepStopped { step, address, waited, .. } => {
                let took = self.end(step);
                let mark = paint(style::WARNING, "-");
                self.say(format!("  {mark} {address}  {waited} {}", paint(style::FAINT, took)));
            }
            Event::StepSkipped { address, because, .. } => {
                self.say(format!(
                    "  {} {address}  left out, it needs `{because}`",
                    paint(style::WARNING, "-")
                ));
            }
            // Every stack that runs says it; the user stopped one run.
            Event::Stopping { .. } => self.display.stopping.call_once(|| {
                let running = self.display.lock().len();
                self.say(format!(
                    "{} {running} running: what is being written is finished, nothing is waited for; interrupt again to stop now",
                    paint(style::WARNING, "stopping:")
                ));
            }),
            Event::RefreshStarted { .. }
            | Event::RefreshDone { .. }
            | Event::ApplyStarted { .. }
            | Event::ApplyDone { .. }
            | Event::StepStarted { .. }
            | Event::StepDone { .. } => {}
        }
    }
}
