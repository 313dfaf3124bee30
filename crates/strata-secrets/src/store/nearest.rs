//! The name that someone probably meant.

/// The candidate that needs the fewest changes, if they are few.
pub(super) fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let most = name.chars().count().div_ceil(3).max(1);
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(changes, _)| *changes <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many characters must be added, removed or changed.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, character) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(character != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        let names = ["proxmox.api_token_secret", "proxmox.api_token_id", "tfstate_password"];
        assert_eq!(nearest("proxmox.api_tokn_secret", names.into_iter()), Some("proxmox.api_token_secret"));
        assert_eq!(nearest("tfstate-password", names.into_iter()), Some("tfstate_password"));
        assert_eq!(nearest("database", names.into_iter()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
