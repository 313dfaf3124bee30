//! Names that every format takes as they are.

use std::collections::BTreeMap;

/// A text as a name: letters, digits, `.`, `-` and `_` stay, anything else becomes `_`, also a dash in front, which would be an option.
pub fn alias(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = text.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    match name.strip_prefix(['-', '.']) {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "_".to_owned(),
        None => name,
    }
}

/// Names of groups, which are identifiers. Two groups whose names would become the same one stay apart.
#[derive(Default)]
pub(crate) struct GroupNames {
    taken: BTreeMap<String, (&'static str, String)>,
}

impl GroupNames {
    pub(crate) fn name(&mut self, sort: &'static str, text: &str) -> String {
        let letters = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let plain: String = format!("{sort}_").chars().chain(letters).collect();
        let own = (sort, text.to_owned());
        let mut name = plain.clone();
        let mut number = 2;
        while self.taken.get(&name).is_some_and(|other| *other != own) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        self.taken.insert(name.clone(), own);
        name
    }
}
