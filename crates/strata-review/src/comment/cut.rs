//! What fits into a comment: by importance, and among equals by the order of the plan. The same plan is always cut in the same way.

use std::collections::{BTreeMap, BTreeSet};

use crate::effects::Importance;

/// A stack, and one of its objects.
type Place = (usize, usize);

struct Piece {
    importance: Importance,
    place: Place,
    full: usize,
    short: usize,
}

/// What there is, with what each would take.
pub(super) struct Pieces {
    room: usize,
    titles: BTreeMap<usize, usize>,
    pieces: Vec<Piece>,
}

impl Pieces {
    pub(super) fn new(room: usize) -> Self {
        Self { room, titles: BTreeMap::new(), pieces: Vec::new() }
    }

    /// The fold of a stack, which its first piece pays for.
    pub(super) fn group(&mut self, stack: usize, title: usize) {
        self.titles.insert(stack, title);
    }

    pub(super) fn add(&mut self, importance: Importance, place: Place, full: usize, short: usize) {
        self.pieces.push(Piece { importance, place, full, short });
    }

    /// First the line of each, then the rest of each, as long as there is room.
    pub(super) fn choose(mut self) -> Kept {
        self.pieces.sort_by_key(|piece| (piece.importance, piece.place));
        let mut kept = Kept::default();
        let mut opened = BTreeSet::new();
        for piece in &self.pieces {
            let is_folded = piece.importance != Importance::Removal;
            let title = match is_folded && !opened.contains(&piece.place.0) {
                true => self.titles.get(&piece.place.0).copied().unwrap_or_default(),
                false => 0,
            };
            if let Some(left) = self.room.checked_sub(piece.short + title) {
                self.room = left;
                kept.0.insert(piece.place, false);
                if is_folded {
                    opened.insert(piece.place.0);
                }
            }
        }
        for piece in &self.pieces {
            if let (Some(whole), Some(left)) =
                (kept.0.get_mut(&piece.place), self.room.checked_sub(piece.full - piece.short))
            {
                self.room = left;
                *whole = true;
            }
        }
        kept
    }
}

/// What is shown.
#[derive(Default)]
pub(super) struct Kept(BTreeMap<Place, bool>);

impl Kept {
    /// Whether it is shown whole or with its first line; none if it is left out.
    pub(super) fn of(&self, place: Place) -> Option<bool> {
        self.0.get(&place).copied()
    }
}
