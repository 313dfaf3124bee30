//! What is drawn.

/// What a plan does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Create,
    Update,
    Replace,
    Delete,
}

impl Change {
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Replace, Self::Delete];

    /// Its name in the picture, and in the legend.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "change",
            Self::Replace => "replace",
            Self::Delete => "destroy",
        }
    }
}

/// A box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Unique in the picture.
    pub id: String,
    pub label: String,
    pub stack: String,
    /// Its place among the layers.
    pub layer: usize,
    /// The hypervisor that it is on; empty for what is on none.
    pub lane: String,
    pub change: Option<Change>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// From the lowest on.
    pub layers: Vec<String>,
    pub nodes: Vec<Node>,
    /// From what is needed to what needs it. Those that lead nowhere are not drawn.
    pub edges: Vec<(String, String)>,
}
