//! Each code of a message has a section in docs/codes.md, and each section a message.

use std::collections::BTreeSet;

use strata_diagnostics::CodePage;

use super::{product, product_files};

/// What makes a message out of the code that follows.
const MAKERS: [&str; 6] =
    ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::note(", ".refuse(", "report(", "say("];

#[test]
fn every_code_is_explained_and_every_explanation_has_a_message() {
    let (mut made, mut all) = (BTreeSet::new(), String::new());
    for path in product_files() {
        let code = product(&path);
        for maker in MAKERS {
            made.extend(code.split(maker).skip(1).filter_map(first_text));
        }
        // The severity stands before the code.
        let with_severity = code.split("Diagnostic::new(").skip(1);
        made.extend(with_severity.filter_map(|rest| first_text(rest.split_once(',')?.1)));
        all.push_str(&code);
    }
    let explained: BTreeSet<String> = CodePage::all().map(|page| page.code.to_owned()).collect();
    let missing: Vec<_> = made.difference(&explained).collect();
    assert!(made.len() > 70, "{made:?}");
    assert!(missing.is_empty(), "without a section in docs/codes.md: {missing:?}");
    let gone: Vec<_> = explained.iter().filter(|code| !all.contains(&format!("\"{code}\""))).collect();
    assert!(gone.is_empty(), "sections of codes that nothing has: {gone:?}");
}

/// A code that stands first, as it is written.
fn first_text(rest: &str) -> Option<String> {
    let (text, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
    let is_code = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    is_code.then(|| text.to_owned())
}
