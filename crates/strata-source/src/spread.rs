//! How machines are spread over the nodes of a list: those of one group apart as far as possible, and all of them evenly.
//!
//! Machines are taken in the order of the source, control planes first, so that one source gives one answer.

use std::collections::BTreeMap;

use strata_yaml::Spanned;

/// A machine that stands, or is to stand, on a node.
#[derive(Debug, Clone, Copy)]
pub struct Seat<'a> {
    /// Machines of one group are kept apart: the members of a count, the control planes, the workers of a pool.
    pub group: &'a str,
    /// The node that the source names for it.
    pub written: Option<&'a Spanned<String>>,
    /// The nodes that it may be put on, where the source names a list.
    pub over: &'a [Spanned<String>],
}

impl<'a> Seat<'a> {
    fn on(&self, node: &str) -> Option<&'a Spanned<String>> {
        self.over.iter().find(|one| one.as_str() == node)
    }
}

/// The node of each seat. One that `stands` somewhere on its list already stays there, and counts before the others are placed.
pub fn spread<'a>(
    seats: &[Seat<'a>],
    stands: impl Fn(usize) -> Option<String>,
) -> Vec<Option<&'a Spanned<String>>> {
    let usual = placed(seats, |_| None);
    let kept = |at: usize| seats[at].on(&stands(at)?);
    let kept: Vec<Option<&'a Spanned<String>>> = (0..seats.len()).map(kept).collect();
    // An apply that was interrupted goes on with the order that it began with.
    let same = |(kept, usual): (&Option<&Spanned<String>>, &Option<&Spanned<String>>)| {
        kept.is_none_or(|kept| usual.is_some_and(|usual| usual.value == kept.value))
    };
    if kept.iter().zip(&usual).all(same) {
        return usual;
    }
    placed(seats, |at| kept[at])
}

fn placed<'a>(
    seats: &[Seat<'a>],
    known: impl Fn(usize) -> Option<&'a Spanned<String>>,
) -> Vec<Option<&'a Spanned<String>>> {
    let known = |(at, seat): (usize, &Seat<'a>)| seat.written.or_else(|| known(at));
    let mut nodes: Vec<Option<&'a Spanned<String>>> = seats.iter().enumerate().map(known).collect();
    let (mut load, mut apart) = (BTreeMap::new(), BTreeMap::new());
    for (seat, node) in seats.iter().zip(&nodes) {
        if let Some(node) = node {
            *load.entry(node.as_str()).or_insert(0_usize) += 1;
            *apart.entry((seat.group, node.as_str())).or_insert(0_usize) += 1;
        }
    }
    for (seat, place) in seats.iter().zip(&mut nodes).filter(|(_, place)| place.is_none()) {
        let taken = |node: &&Spanned<String>| {
            let equals = apart.get(&(seat.group, node.as_str())).copied().unwrap_or(0);
            (equals, load.get(node.as_str()).copied().unwrap_or(0))
        };
        // Of several that are equal, the first of the list.
        let Some(node) = seat.over.iter().min_by_key(taken) else { continue };
        *load.entry(node.as_str()).or_insert(0) += 1;
        *apart.entry((seat.group, node.as_str())).or_insert(0) += 1;
        *place = Some(node);
    }
    nodes
}

#[cfg(test)]
mod tests {
    use strata_diagnostics::{SourceMap, Span};

    use super::*;

    fn list(nodes: &[&str]) -> Vec<Spanned<String>> {
        let nowhere = Span::start_of(SourceMap::new().add("stack.yaml", ""));
        nodes.iter().map(|node| Spanned::new((*node).to_owned(), nowhere)).collect()
    }

    /// The nodes of machines, by their groups and how many of each there are.
    fn nodes(groups: &[(&str, usize)], over: &[&str], stands: &[(usize, &str)]) -> String {
        let over = list(over);
        let seat = |group| Seat { group, written: None, over: &over };
        let seats: Vec<Seat<'_>> =
            groups.iter().flat_map(|(group, count)| std::iter::repeat_n(seat(*group), *count)).collect();
        let stands = |at| stands.iter().find(|(one, _)| *one == at).map(|(_, node)| (*node).to_owned());
        let placed = spread(&seats, stands);
        placed.iter().map(|node| node.map_or("-", |node| node.as_str())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn groups_are_spread_and_all_together_are_even() {
        assert_eq!(nodes(&[("cp", 1), ("w", 1)], &["a", "b"], &[]), "a b");
        assert_eq!(nodes(&[("cp", 3), ("w", 3)], &["a", "b"], &[]), "a b a b a b");
        assert_eq!(nodes(&[("cp", 3), ("w", 2), ("gpu", 2)], &["a", "b", "c"], &[]), "a b c a b c a");
        assert_eq!(nodes(&[("cp", 2)], &[], &[]), "- -");
    }

    #[test]
    fn what_stands_somewhere_stays_and_counts() {
        let both = [(0, "a"), (1, "a")];
        assert_eq!(nodes(&[("cp", 1), ("w", 1)], &["a", "b"], &both), "a a", "as it was placed before");
        assert_eq!(nodes(&[("cp", 3), ("w", 1)], &["a", "b", "c"], &[(3, "c")]), "a b c c");
        assert_eq!(nodes(&[("cp", 3)], &["a", "b", "c"], &[(0, "c")]), "c a b");
        assert_eq!(nodes(&[("cp", 2)], &["a", "b"], &[(0, "gone")]), "a b", "a node that left the list");
        assert_eq!(nodes(&[("cp", 2)], &["b", "a"], &[(0, "a"), (1, "b")]), "a b", "another order");
    }

    #[test]
    fn a_machine_with_a_node_of_its_own_counts_as_well() {
        let (over, own) = (list(&["a", "b"]), list(&["a"]));
        let seats = [
            Seat { group: "cp", written: None, over: &over },
            Seat { group: "cp", written: own.first(), over: &[] },
        ];
        let placed = spread(&seats, |_| None);
        assert_eq!(placed[0].map(|node| node.as_str()), Some("b"));
        assert_eq!(placed[1].map(|node| node.as_str()), Some("a"));
    }
}
