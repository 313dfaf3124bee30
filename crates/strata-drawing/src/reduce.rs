//! Edges that other edges say already are left out: fewer lines cross.

use std::collections::{BTreeMap, BTreeSet};

use crate::picture::Picture;

/// The edges between nodes of the picture, without those that a longer way stands for. In a circle, all are kept.
pub(crate) fn edges(picture: &Picture) -> BTreeSet<(&str, &str)> {
    let known: BTreeSet<&str> = picture.nodes.iter().map(|node| node.id.as_str()).collect();
    let mut after: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in &picture.edges {
        if known.contains(from.as_str()) && known.contains(to.as_str()) && from != to {
            after.entry(from).or_default().insert(to);
        }
    }
    let mut kept = BTreeSet::new();
    for (from, direct) in &after {
        for to in direct {
            let another_way = direct
                .iter()
                .filter(|via| *via != to)
                .any(|via| reaches(&after, via, to) && !reaches(&after, via, from));
            if !another_way {
                kept.insert((*from, *to));
            }
        }
    }
    kept
}

fn reaches(after: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            open.extend(after.get(at).into_iter().flatten());
        }
    }
    false
}
