//! Which variables the source reads, so that the jobs are given them.

use std::collections::BTreeSet;

use strata_source::Repository;

/// The names after `env:` in the files of the source, where they look like names of variables. One too many is a secret that stays empty.
pub fn variables(repository: &Repository) -> BTreeSet<String> {
    let texts = repository.sources.files().map(|(_, file)| file.text());
    texts.flat_map(|text| text.lines()).flat_map(of_line).collect()
}

fn of_line(line: &str) -> Vec<String> {
    let code = line.split(" #").next().unwrap_or_default();
    if code.trim_start().starts_with('#') {
        return Vec::new();
    }
    let begins = |before: &str| before.is_empty() || before.ends_with([' ', '{', ',']);
    let parts: Vec<(usize, &str)> = code.match_indices("env:").collect();
    let names = parts.into_iter().filter(|(place, _)| begins(&code[..*place])).filter_map(|(place, key)| {
        let rest = code[place + key.len()..].trim_start().trim_start_matches(['"', '\'']);
        let end = rest.find(|letter: char| !is_of_name(letter)).unwrap_or(rest.len());
        let name = &rest[..end];
        let whole = rest[end..].trim_start_matches(['"', '\'']).trim_start();
        let is_whole = whole.is_empty() || whole.starts_with(['}', ',']);
        (is_whole && name.starts_with(|letter: char| letter.is_ascii_uppercase() || letter == '_'))
            .then(|| name.to_owned())
    });
    names.collect()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_where_they_are_read() {
        let of = |line: &str| of_line(line).join(" ");
        assert_eq!(of("    token: {env: PVE_TOKEN}"), "PVE_TOKEN");
        assert_eq!(of("      env: \"PVE_TOKEN\"  # of the datacenter"), "PVE_TOKEN");
        assert_eq!(of("a: {env: A_1}, b: {env: B}"), "A_1 B");
        assert_eq!(of("# token: {env: PVE_TOKEN}"), "");
        assert_eq!(of("env: production"), "");
        assert_eq!(of("my-env: TOKEN"), "");
        assert_eq!(of("env:"), "");
        assert_eq!(of("env: SOME other"), "");
    }
}
