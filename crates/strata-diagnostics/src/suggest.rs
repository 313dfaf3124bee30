//! The nearest valid name for a typo.

/// Names longer than this are not compared: nobody mistypes them by one letter, and the work is quadratic.
const LONGEST: usize = 64;

/// How many edits (insert, delete, replace, swap two neighbours) lead from `a` to `b`, if at most `limit`.
pub fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > limit || a.len().max(b.len()) > LONGEST {
        return None;
    }
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut row = vec![0; b.len() + 1];
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
        }
        if row.iter().all(|cost| *cost > limit) {
            return None;
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    Some(last[b.len()]).filter(|cost| *cost <= limit)
}

/// The candidate that `typed` was most likely meant to be.
///
/// Another spelling of the same words (`vm_id`, `VMID` for `vmId`) wins over any typo. A typo may cost a third of
/// the letters; what is farther away is more often another word than a slip, and no help.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(typed);
    let limit = (folded.chars().count() / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let Some(cost) = distance(&folded, &fold(candidate), limit) else { continue };
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, candidate));
        }
    }
    best.map(|(_, candidate)| candidate).filter(|candidate| *candidate != typed)
}

/// The name without case and word separators.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits_and_swaps() {
        assert_eq!(distance("memory", "memory", 3), Some(0));
        assert_eq!(distance("memroy", "memory", 3), Some(1));
        assert_eq!(distance("cors", "cores", 3), Some(1));
        assert_eq!(distance("disks", "tags", 4), Some(4));
        assert_eq!(distance("abc", "xyz", 2), None);
        assert_eq!(distance("", "ab", 2), Some(2));
    }

    #[test]
    fn prefers_another_spelling_to_another_word() {
        let keys = ["vmId", "vms", "memory", "template", "onboot"];
        assert_eq!(nearest("vm_id", keys), Some("vmId"));
        assert_eq!(nearest("VMID", keys), Some("vmId"));
        assert_eq!(nearest("onBoot", keys), Some("onboot"));
        assert_eq!(nearest("tmeplate", keys), Some("template"));
        assert_eq!(nearest("networks", keys), None);
    }
}
