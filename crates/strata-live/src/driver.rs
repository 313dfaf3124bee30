//! The terminal: frames under the lines that are printed, or lines alone.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_engine::Event;
use strata_views::columns::folded;

use crate::frame::width;
use crate::{Model, PlannedStack, Size, Times, frame, line, summary};

/// How often a frame is drawn.
const TICK: Duration = Duration::from_millis(120);
/// Where nobody sees a frame, what a step has been at for this long is told, once.
const QUIET: Duration = Duration::from_secs(5);

/// Where it is drawn.
pub trait Screen: Send + Sync {
    /// The size of the terminal; none where there is no terminal that can be drawn on.
    fn size(&self) -> Option<Size>;
    /// As it is, without a line break.
    fn write(&self, text: &str);
    /// Whether every change of what a step does is told.
    fn is_verbose(&self) -> bool;
}

/// The live view of a process. Clones share it.
#[derive(Clone)]
pub struct Live(Arc<Shared>);

struct Shared {
    screen: Box<dyn Screen>,
    start: Instant,
    view: Mutex<View>,
}

#[derive(Default)]
struct View {
    model: Model,
    /// What is drawn now: the width of each line.
    drawn: Vec<usize>,
    ticking: bool,
    /// Somebody is asked: nothing is drawn over the question.
    paused: bool,
    remembered: Option<PathBuf>,
}

impl Live {
    pub fn new(screen: Box<dyn Screen>) -> Self {
        Self(Arc::new(Shared { screen, start: Instant::now(), view: Mutex::default() }))
    }

    /// What is going to be done, and the file that remembers how long it took.
    pub fn plan(&self, stacks: impl IntoIterator<Item = PlannedStack>, remembered: PathBuf) {
        let mut view = self.0.lock();
        if view.remembered.is_none() {
            let text = read_text_file(&remembered, LARGEST_FILE).unwrap_or_default();
            view.model.times = Times::read(&text);
            view.remembered = Some(remembered);
        }
        stacks.into_iter().for_each(|stack| view.model.plan(stack));
    }

    /// Something happened to the stack with this key: it is drawn, and told where it should stay.
    pub fn take(&self, key: &str, event: &Event) {
        let shared = &self.0;
        let now = shared.start.elapsed();
        let size = shared.screen.size();
        let mut view = shared.lock();
        let mut told = line(&view.model, key, event, now, size.is_none());
        let before = match event {
            Event::StepProgress { step, .. } => {
                Some(view.model.step(key, *step).map(|one| one.state.clone()))
            }
            _ => None,
        };
        view.model.take(key, event, now);
        if let (Event::StepProgress { step, address, doing }, true) = (event, shared.screen.is_verbose())
            && before != Some(view.model.step(key, *step).map(|one| one.state.clone()))
        {
            view.model.told(key, *step);
            told = Some(format!("  {address}: {doing}"));
        }
        if let Some(told) = told {
            let told = size.map_or(told.clone(), |size| folded(&told, 4, size.columns));
            shared.erase(&mut view);
            shared.screen.write(&format!("{told}\n"));
        }
        view.paused &= !matches!(event, Event::StepStarted { .. });
        if view.model.began.is_some() {
            shared.draw(&mut view, now);
            if !std::mem::replace(&mut view.ticking, true) {
                let weak = Arc::downgrade(shared);
                std::thread::spawn(move || {
                    while let Some(shared) = weak.upgrade() {
                        if !shared.tick() {
                            return;
                        }
                        drop(shared);
                        std::thread::sleep(TICK);
                    }
                });
            }
        }
    }

    /// Writes something else, with no frame in its way.
    pub fn apart<T>(&self, write: impl FnOnce() -> T) -> T {
        let mut view = self.0.lock();
        self.0.erase(&mut view);
        let written = write();
        if view.ticking {
            self.0.draw(&mut view, self.0.start.elapsed());
        }
        written
    }

    /// Somebody is asked something: no frame until the next step begins.
    pub fn pause(&self) {
        let mut view = self.0.lock();
        self.0.erase(&mut view);
        view.paused = true;
    }

    /// The run is over: no frame any more, its times are kept, and what came of it is said in a few lines.
    pub fn end(&self) -> Vec<String> {
        let now = self.0.start.elapsed();
        let mut view = self.0.lock();
        self.0.erase(&mut view);
        view.ticking = false;
        let Some(size) = self.0.screen.size() else { return Vec::new() };
        if let Some(path) = view.remembered.take().filter(|_| view.model.began.is_some()) {
            // Whoever cannot write there has no expectations next time; nothing else.
            let _ = strata_secrets::replace(&path, view.model.times.write().as_bytes());
        }
        let lines = summary(&view.model, now, size.columns);
        view.model = Model::default();
        lines
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws what time alone changes; false when the run is over.
    fn tick(&self) -> bool {
        let now = self.start.elapsed();
        let mut view = self.lock();
        if self.screen.size().is_none() {
            for line in view.model.overdue(now, QUIET) {
                self.screen.write(&format!("{line}\n"));
            }
        } else if view.ticking {
            self.draw(&mut view, now);
        }
        view.ticking
    }

    fn draw(&self, view: &mut View, now: Duration) {
        let Some(size) = self.screen.size().filter(|_| !view.paused) else { return };
        let lines = frame(&view.model, now, size);
        let mut text = erasing(&view.drawn, size.columns);
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        view.drawn = lines.iter().map(|line| width(line)).collect();
        self.screen.write(&text);
    }

    fn erase(&self, view: &mut View) {
        if let Some(size) = self.screen.size().filter(|_| !view.drawn.is_empty()) {
            self.screen.write(&erasing(&view.drawn, size.columns));
        }
        view.drawn.clear();
    }
}

/// Goes to the first line of what is drawn, and clears from there. A terminal that became narrower has broken its lines.
fn erasing(drawn: &[usize], columns: usize) -> String {
    let rows: usize = drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
    if rows == 0 { String::new() } else { format!("\r\u{1b}[{rows}A\u{1b}[J") }
}
