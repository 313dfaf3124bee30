//! Patterns of paths: `*` is anything within a folder, `**` anything, `?` one character.

/// Whether a path is what a pattern means. A pattern without an end of its own means everything below it: `clusters/` and `clusters/**` are the same.
pub fn matches(pattern: &str, path: &str) -> bool {
    let whole = match pattern.strip_suffix('/') {
        Some(folder) => format!("{folder}/**"),
        None => pattern.to_owned(),
    };
    let pattern: Vec<char> = whole.trim_start_matches("./").chars().collect();
    let path: Vec<char> = path.chars().collect();
    // The places in the pattern that the path read so far can have led to: linear in both, whatever the pattern.
    let mut places = vec![false; pattern.len() + 1];
    places[0] = true;
    advance(&pattern, &mut places);
    for character in path {
        let mut next = vec![false; pattern.len() + 1];
        for (place, _) in places.iter().enumerate().filter(|(_, reached)| **reached) {
            match pattern.get(place) {
                Some('*') if is_double(&pattern, place) || character != '/' => next[place] = true,
                Some('?') if character != '/' => next[place + 1] = true,
                Some(own) if *own == character && *own != '*' => next[place + 1] = true,
                _ => {}
            }
        }
        advance(&pattern, &mut next);
        places = next;
    }
    places[pattern.len()]
}

/// Stars can stand for nothing.
fn advance(pattern: &[char], places: &mut [bool]) {
    for place in 0..pattern.len() {
        if places[place] && pattern[place] == '*' {
            places[place + 1] = true;
        }
        // `**/` can stand for no folder at all.
        if places[place]
            && is_double(pattern, place)
            && pattern.get(place + 2) == Some(&'/')
            && pattern[place + 1] == '*'
        {
            places[place + 3] = true;
        }
    }
}

/// Whether a star is one of two.
fn is_double(pattern: &[char], place: usize) -> bool {
    let star = |place: usize| pattern.get(place) == Some(&'*');
    star(place) && (star(place + 1) || (place > 0 && star(place - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_people_expect() {
        let yes = [
            ("clusters/**", "clusters/prod/cluster.yaml"),
            ("clusters/", "clusters/a"),
            ("**/stack.yaml", "stacks/web/stack.yaml"),
            ("**/stack.yaml", "stack.yaml"),
            ("stacks/*/stack.yaml", "stacks/web/stack.yaml"),
            ("strata.yaml", "strata.yaml"),
            ("*.yaml", "strata.yaml"),
            ("**", "a/b"),
            ("st?cks/**/x", "stacks/a/b/x"),
            ("stacks/**/x", "stacks/x"),
        ];
        let no = [
            ("clusters/**", "stacks/clusters/a"),
            ("stacks/*/stack.yaml", "stacks/a/b/stack.yaml"),
            ("*.yaml", "a/strata.yaml"),
            ("strata.yaml", "strata.yml"),
            ("a?b", "a/b"),
            ("clusters/", "clusters"),
        ];
        for (pattern, path) in yes {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in no {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
        assert!(!matches(&"*a".repeat(200), &"a".repeat(500).replace('a', "b")));
    }
}
