//! Index pages of web servers: the names that a folder has.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

/// The names that a page lists of its own folder; none where it is no index. Links that lead elsewhere are no names of it.
pub(crate) fn names(folder: &str, page: &str) -> Option<BTreeSet<String>> {
    let listed: BTreeSet<String> = match serde_json::from_str::<Value>(page) {
        Ok(Value::Array(entries)) => {
            entries.iter().filter_map(|entry| entry["name"].as_str()).map(str::to_owned).collect()
        }
        _ => {
            let base = Url::parse(folder).ok()?;
            links(page).filter_map(|link| name_in(&base, link)).collect()
        }
    };
    let names: BTreeSet<String> = listed.into_iter().filter(|name| is_name(name)).collect();
    (!names.is_empty()).then_some(names)
}

fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        rest[1..].split(quote).next()
    })
}

/// The name of what a link leads to, if that lies directly in the folder.
fn name_in(base: &Url, link: &str) -> Option<String> {
    let target = base.join(link).ok()?;
    if target.origin() != base.origin() || target.query().is_some() {
        return None;
    }
    let name = target.path().strip_prefix(base.path())?.trim_end_matches('/');
    Some(percent_decode_str(name).decode_utf8().ok()?.into_owned())
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+~".contains(&byte);
    !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_in_the_folder_is_listed() {
        let page = r#"<html><a href="../">up</a><a href="?C=M;O=A">date</a><a href="20250115/">x</a>
            <a href='./20250220/'>x</a><a href="/images/20250301/">x</a><a href="https://evil.example/20990101/">x</a>
            <a href="//evil.example/20990102/">x</a><a href="a%2Bb.iso">x</a><a href="..%2f20990103">x</a><a href="deep/20990104">x</a>"#;
        let found = names("https://x.example/images/", page).unwrap();
        let expected = ["20250115", "20250220", "20250301", "a+b.iso"];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        let json = names("https://x.example/", r#"[{"name":"a-1.iso","type":"file"},{"name":"../../x"}]"#);
        assert_eq!(json.unwrap().len(), 1);
        for none in ["", "<html>please log in</html>", "{}", "[]", "href="] {
            assert_eq!(names("https://x.example/", none), None, "{none}");
        }
    }
}
