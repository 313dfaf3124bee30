//! The live view of an apply: what runs, what waits for what, what went wrong, how long it still takes.
//!
//! [`Model`] is what is known: plans, and the engine's events after them. [`frame`] draws it for a size of terminal, [`summary`] says at the end
//! what came of it; both are pure. [`Live`] is the thin part that owns a terminal: it draws frames under the lines that are printed, and falls
//! back to plain lines where nobody sees a frame.
//!
//! # What always holds
//!
//! - A frame has no more lines than the terminal, and no line is wider.
//! - An error stays: as a line above the frame, which scrolls as any other, and in the frame until the end.
//! - Nothing of a run depends on what is drawn.
//!
//! ```
//! use std::time::Duration;
//! use strata_live::{Model, Size, frame};
//!
//! let model = Model::new(Default::default());
//! assert_eq!(frame(&model, Duration::ZERO, Size { columns: 80, rows: 24 }), Vec::<String>::new());
//! ```

mod driver;
mod frame;
mod lines;
mod model;
mod summary;
mod times;
mod waits;

pub use driver::{Live, Screen};
pub use frame::{Size, frame};
pub use lines::line;
pub use model::{Model, PlannedStack, State, Step};
pub use summary::summary;
pub use times::Times;
