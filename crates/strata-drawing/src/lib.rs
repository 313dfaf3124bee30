//! The resource graph as a picture: layers as bands, hypervisors as lanes, changes coloured.
//!
//! [`svg`] makes an image, [`html`] a page around it that needs nothing else and shows what belongs to an object when the pointer is on it.
//! Both are pure; nothing here knows what an object is.
//!
//! # What always holds
//!
//! - The same picture is the same text: nothing is drawn at random, and nothing depends on the order in which objects were given.
//! - No two boxes overlap, and every box lies within its band and its lane.
//! - No name can become markup.
//!
//! ```
//! use strata_drawing::{Change, Node, Picture, svg};
//!
//! let node = |id: &str, layer, lane: &str| Node {
//!     id: id.to_owned(),
//!     label: id.to_owned(),
//!     stack: "web".to_owned(),
//!     layer,
//!     lane: lane.to_owned(),
//!     change: Some(Change::Create),
//! };
//! let picture = Picture {
//!     layers: vec!["hypervisors".to_owned(), "workloads".to_owned()],
//!     nodes: vec![node("image", 0, "pve1"), node("web-1", 1, "pve1")],
//!     edges: vec![("image".to_owned(), "web-1".to_owned())],
//! };
//! assert!(svg(&picture).contains(">web-1</text>"));
//! ```

mod layout;
mod page;
mod picture;
mod reduce;
mod svg;

pub use layout::{Placed, Plane, Rect, plane};
pub use page::html;
pub use picture::{Change, Node, Picture};
pub use svg::svg;
