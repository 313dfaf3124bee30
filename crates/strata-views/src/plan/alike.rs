//! Objects that differ in nothing but their number are told once: `web-1 … web-3`.

use strata_resource::Address;

use super::Block;

/// The blocks, those of equal objects as one, where the first of them stood.
pub(super) fn folded(blocks: Vec<Block<'_>>) -> Vec<Block<'_>> {
    let mut groups: Vec<Vec<Block<'_>>> = Vec::new();
    for block in blocks {
        match groups.iter_mut().find(|group| is_alike(&group[0], &block)) {
            Some(group) => group.push(block),
            None => groups.push(vec![block]),
        }
    }
    groups.into_iter().filter_map(merged).collect()
}

/// The name without its number, and the number. A name may have several; the last one counts.
fn numbered(name: &str) -> Option<(&str, u64, &str)> {
    let end = name.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |at| at + 1);
    Some((&name[..start], name[start..end].parse().ok()?, &name[end..]))
}

fn is_alike(first: &Block<'_>, other: &Block<'_>) -> bool {
    let (one, two) = (first.address, other.address);
    let (Some((begin, from, end)), Some((other_begin, to, other_end))) =
        (numbered(one.name()), numbered(two.name()))
    else {
        return false;
    };
    let is_series = (begin, end) == (other_begin, other_end)
        && (one.environment(), one.stack(), one.kind()) == (two.environment(), two.stack(), two.kind());
    let apart = to.wrapping_sub(from);
    is_series
        && first.symbol == other.symbol
        && first.reasons == other.reasons
        && first.rows.len() == other.rows.len()
        && words_alike(&first.headline, &other.headline, apart, true)
        && first
            .rows
            .iter()
            .zip(&other.rows)
            .all(|(one, two)| one.0 == two.0 && one.2 == two.2 && words_alike(&one.1, &two.1, apart, false))
}

/// Word for word the same, but for numbers that are as far apart as the names are, hardware addresses, and where they are.
fn words_alike(one: &str, two: &str, apart: u64, has_place: bool) -> bool {
    let (one, two): (Vec<&str>, Vec<&str>) = (one.split(' ').collect(), two.split(' ').collect());
    let mut before = "";
    one.len() == two.len()
        && one.iter().zip(&two).all(|(one, two)| {
            let is_place = has_place && std::mem::replace(&mut before, *one) == "on";
            one == two || is_place || (is_hardware_address(one) && is_hardware_address(two)) || {
                let (from, to) = (differing_number(one, two), differing_number(two, one));
                from.zip(to).is_some_and(|(from, to)| to.wrapping_sub(from) == apart)
            }
        })
}

/// The number in which a word differs from another that is the same otherwise.
fn differing_number(word: &str, other: &str) -> Option<u64> {
    let same = word.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
    // The whole number: its first digits may be the same.
    let start =
        word.as_bytes()[..same].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    let digits = |text: &str| text.bytes().skip(start).take_while(u8::is_ascii_digit).count();
    let (mine, theirs) = (digits(word), digits(other));
    let rest_is_same = word.get(start + mine..)? == other.get(start + theirs..)?;
    (rest_is_same && mine > 0 && theirs > 0).then(|| word[start..start + mine].parse().ok()).flatten()
}

fn is_hardware_address(word: &str) -> bool {
    let parts: Vec<&str> = word.trim_end_matches(',').split(':').collect();
    parts.len() == 6
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// One block for all: what differs is given as the first and the last.
fn merged(group: Vec<Block<'_>>) -> Option<Block<'_>> {
    let addresses: Vec<&Address> = group.iter().map(|block| block.address).collect();
    let (name, count) = (listed(&addresses), group.len());
    let between = |texts: &[&str]| {
        let all: Vec<Vec<&str>> = texts.iter().map(|text| text.split(' ').collect()).collect();
        let word = |(place, first): (usize, &&str)| {
            let mut others: Vec<&str> = all.iter().filter_map(|words| words.get(place).copied()).collect();
            others.dedup();
            match others.as_slice() {
                [_] => (*first).to_owned(),
                _ if is_hardware_address(first) => if first.ends_with(',') { "…," } else { "…" }.to_owned(),
                [.., last] => format!("{} … {last}", first.trim_end_matches(',')),
                [] => String::new(),
            }
        };
        all.first().map(|words| words.iter().enumerate().map(word).collect::<Vec<_>>().join(" "))
    };
    let headlines: Vec<&str> = group.iter().map(|block| block.headline.as_str()).collect();
    let headline = between(&headlines)?;
    let rows = group[0].rows.iter().enumerate().map(|(place, (path, shown, note))| {
        let texts: Vec<&str> = group.iter().map(|block| block.rows[place].1.as_str()).collect();
        (path.clone(), between(&texts).unwrap_or_else(|| shown.clone()), note.clone())
    });
    let rows = rows.collect();
    let first = group.into_iter().next()?;
    if count == 1 {
        return Some(first);
    }
    Some(Block { name, headline: format!("{count} × {headline}"), rows, ..first })
}

/// Addresses in a few words: `web/vm/web-1 … web-3, web/vm/db`.
pub(super) fn listed(addresses: &[&Address]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = addresses;
    while let Some(first) = rest.first() {
        let follows = |pair: &[&Address]| {
            let places =
                |one: &Address| (one.environment().map(str::to_owned), one.stack().to_owned(), one.kind());
            match (numbered(pair[0].name()), numbered(pair[1].name())) {
                (Some((begin, from, end)), Some((other, to, other_end))) => {
                    (begin, end, from + 1) == (other, other_end, to) && places(pair[0]) == places(pair[1])
                }
                _ => false,
            }
        };
        let run = 1 + rest.windows(2).take_while(|pair| follows(pair)).count();
        parts.push(match run {
            1 => first.to_string(),
            2 => format!("{first}, {}", rest[1].name()),
            _ => format!("{first} … {}", rest[run - 1].name()),
        });
        rest = &rest[run..];
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use strata_resource::Kind;

    use super::*;

    #[test]
    fn numbers_that_go_with_the_names_are_alike_and_others_are_not() {
        let alike = |one, two| words_alike(one, two, 2, false);
        assert!(alike("VM 9100 on pve1", "VM 9102 on pve1"));
        assert!(alike("ip 192.0.2.9/24, gateway 192.0.2.1", "ip 192.0.2.11/24, gateway 192.0.2.1"));
        assert!(alike("virtio, BC:24:11:5E:0B:7A on vmbr0", "virtio, BC:24:11:00:0B:01 on vmbr0"));
        assert!(!alike("40 GiB on tank", "60 GiB on tank"), "a disk of another size is another disk");
        assert!(!alike("VM 9100 on pve1", "VM 9101 on pve1"), "not as far apart as the names");
        assert!(!alike("cores 2", "cores 2, numa"));
        assert!(words_alike("VM 9100 on pve1", "VM 9102 on pve2", 2, true), "where they are may differ");
    }

    #[test]
    fn runs_of_names_are_listed_as_runs() {
        let named = |name: &str| Address::new(None, "web", Kind::named("vm"), name);
        let all: Vec<Address> = ["web-8", "web-9", "web-10", "db", "a1", "a2", "b2"].map(named).to_vec();
        let all: Vec<&Address> = all.iter().collect();
        assert_eq!(listed(&all), "web/vm/web-8 … web-10, web/vm/db, web/vm/a1, a2, web/vm/b2");
    }
}
