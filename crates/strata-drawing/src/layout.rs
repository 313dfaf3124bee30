//! Where everything stands: a grid of bands and lanes, in each cell a block for each stack.

use std::collections::{BTreeMap, BTreeSet};

use crate::picture::{Node, Picture};

pub(crate) const BOX: (usize, usize) = (168, 26);
const GAP: usize = 10;
const PAD: usize = 14;
/// For the name of a stack above its boxes.
const HEADING: usize = 22;
/// For the names of bands, at the left.
pub(crate) const MARGIN: usize = 40;
/// For the legend and the names of lanes, at the top.
pub(crate) const TOP: usize = 74;
/// How much of its height a band needs for each letter of its name.
const LETTER: usize = 8;
/// Boxes beside each other in a lane.
const WIDEST: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// A node and its box.
#[derive(Debug)]
pub struct Placed<'p> {
    pub node: &'p Node,
    pub rect: Rect,
}

/// The whole picture with its places.
#[derive(Debug, Default)]
pub struct Plane<'p> {
    pub width: usize,
    pub height: usize,
    pub bands: Vec<(&'p str, Rect)>,
    pub lanes: Vec<(&'p str, Rect)>,
    /// Names of stacks, at their places.
    pub headings: Vec<(&'p str, usize, usize)>,
    pub boxes: Vec<Placed<'p>>,
}

/// The nodes of a cell, by their stacks.
type Cell<'p> = BTreeMap<&'p str, Vec<&'p Node>>;

pub fn plane(picture: &Picture) -> Plane<'_> {
    let mut cells: BTreeMap<(usize, &str), Cell<'_>> = BTreeMap::new();
    for node in picture.nodes.iter().filter(|node| node.layer < picture.layers.len()) {
        cells.entry((node.layer, &node.lane)).or_default().entry(&node.stack).or_default().push(node);
    }
    for nodes in cells.values_mut().flat_map(BTreeMap::values_mut) {
        nodes.sort_by_key(|one| natural(&one.id));
    }
    let names: BTreeSet<&str> = cells.keys().map(|(_, lane)| *lane).collect();
    let mut plane = Plane::default();
    let mut x = MARGIN;
    let mut wide: BTreeMap<&str, usize> = BTreeMap::new();
    for lane in names {
        let most = cells.iter().filter(|((_, name), _)| *name == lane).map(|(_, cell)| count(cell)).max();
        // As many beside each other that a cell is about as wide as it is high.
        let across = (1..WIDEST).find(|across| across * across * 6 >= most.unwrap_or(0)).unwrap_or(WIDEST);
        let width = across * (BOX.0 + GAP) - GAP + 2 * PAD;
        plane.lanes.push((lane, Rect { x, y: TOP, width, height: 0 }));
        wide.insert(lane, across);
        x += width + GAP;
    }
    let mut y = TOP;
    for (layer, name) in picture.layers.iter().enumerate() {
        let of_layer = || cells.range((layer, "")..(layer + 1, ""));
        let height = of_layer().map(|((_, lane), cell)| self::height(cell, wide[lane])).max();
        // Its name stands upright beside it.
        let Some(height) = height.map(|height| height.max(name.chars().count() * LETTER + PAD)) else {
            continue;
        };
        let band = Rect { x: 0, y, width: x, height };
        for ((_, lane), cell) in of_layer() {
            let left = plane.lanes.iter().find(|(name, _)| name == lane).map_or(MARGIN, |(_, rect)| rect.x);
            fill(cell, wide[lane], (left + PAD, y), &mut plane);
        }
        plane.bands.push((name, band));
        y += height + GAP;
    }
    for (_, lane) in &mut plane.lanes {
        lane.height = y.saturating_sub(TOP + GAP);
    }
    (plane.width, plane.height) = (x, y);
    plane
}

fn count(cell: &Cell<'_>) -> usize {
    cell.values().map(Vec::len).sum()
}

fn height(cell: &Cell<'_>, across: usize) -> usize {
    let blocks = cell.values().map(|nodes| HEADING + nodes.len().div_ceil(across) * (BOX.1 + GAP));
    blocks.sum::<usize>() + PAD
}

fn fill<'p>(cell: &Cell<'p>, across: usize, (left, top): (usize, usize), plane: &mut Plane<'p>) {
    let mut y = top;
    for (stack, nodes) in cell {
        plane.headings.push((stack, left, y + HEADING - 7));
        y += HEADING;
        for (place, node) in nodes.iter().enumerate() {
            let (column, row) = (place % across, place / across);
            let (x, y) = (left + column * (BOX.0 + GAP), y + row * (BOX.1 + GAP));
            plane.boxes.push(Placed { node, rect: Rect { x, y, width: BOX.0, height: BOX.1 } });
        }
        y += nodes.len().div_ceil(across) * (BOX.1 + GAP);
    }
}

/// `web-10` after `web-9`.
fn natural(text: &str) -> Vec<(u64, String)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let words = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let digits =
            rest[words..].find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len() - words);
        let number = rest[words..words + digits].parse().unwrap_or(0);
        parts.push((0, rest[..words].to_owned()));
        parts.push((number, rest[words..words + digits].to_owned()));
        rest = &rest[words + digits..];
    }
    parts
}
