//! The functions of the language that say the same every time.

use std::net::Ipv4Addr;

use hcl_edit::template::Template;
use serde_json::{Value as Json, json};

use super::eval::{Frame, each, equal, word};
use super::tree::{Content, SourceLine, Tree};
use super::{hcl, parse};

/// The value of a call; nothing if it cannot be told.
pub(super) fn call(frame: &Frame<'_>, name: &str, arguments: &[Tree], place: &SourceLine) -> Option<Tree> {
    let first = arguments.first();
    let tree = match name {
        // What may fail is tried in turn: what is not known counts as failed.
        "try" | "coalesce" | "coalescelist" => {
            let says = |tree: &&Tree| match &tree.content {
                Content::Unknown(_) => false,
                Content::Null => name == "try",
                Content::Text(text) => name == "try" || !text.is_empty(),
                Content::List(items) => name != "coalescelist" || !items.is_empty(),
                _ => true,
            };
            // A part that is not known might have had a value.
            if name != "try" && arguments.iter().take_while(|tree| !says(tree)).any(is_unknown) {
                return None;
            }
            arguments.iter().find(says)?.clone()
        }
        "can" => return Some(Tree::new(place.clone(), Content::Bool(!is_unknown(first?)))),
        _ if arguments.iter().any(is_unknown) => return None,
        "tostring" | "tonumber" | "tobool" | "nonsensitive" | "sensitive" | "tolist" | "toset" | "tomap"
        | "ephemeralasnull" | "one"
            if name != "one" =>
        {
            convert(name, first?, place)?
        }
        "one" => match &first?.content {
            Content::List(items) if items.len() <= 1 => {
                items.first().cloned().unwrap_or_else(|| Tree::new(place.clone(), Content::Null))
            }
            _ => return None,
        },
        "length" => {
            let length = match &first?.content {
                Content::List(items) => items.len(),
                Content::Map(entries) => entries.len(),
                Content::Text(text) => text.chars().count(),
                _ => return None,
            };
            Tree::new(place.clone(), Content::Number(length as f64))
        }
        "merge" => {
            let mut entries: Vec<(String, Tree)> = Vec::new();
            for (key, tree) in arguments.iter().flat_map(Tree::entries) {
                match entries.iter_mut().find(|(known, _)| known == key) {
                    Some((_, known)) => *known = tree.clone(),
                    None => entries.push((key.clone(), tree.clone())),
                }
            }
            let place = arguments.iter().rfind(|tree| !tree.entries().is_empty()).map(|tree| &tree.place);
            Tree::map_of(place.unwrap_or(&first?.place).clone(), entries)
        }
        "concat" => Tree::list_of(place.clone(), arguments.iter().flat_map(Tree::items).cloned().collect()),
        "flatten" => {
            let mut flat = Vec::new();
            flatten(first?, &mut flat);
            Tree::list_of(place.clone(), flat)
        }
        "compact" => {
            let full = first?.items().iter().filter(|tree| word(tree).is_some_and(|text| !text.is_empty()));
            Tree::list_of(place.clone(), full.cloned().collect())
        }
        "distinct" | "setunion" => {
            let mut kept: Vec<Tree> = Vec::new();
            for tree in arguments.iter().flat_map(Tree::items) {
                if !kept.iter().any(|known| equal(known, tree) == Some(true)) {
                    kept.push(tree.clone());
                }
            }
            Tree::list_of(place.clone(), kept)
        }
        "reverse" => Tree::list_of(place.clone(), first?.items().iter().rev().cloned().collect()),
        "sort" => {
            let mut items = first?.items().to_vec();
            items.sort_by_key(word);
            Tree::list_of(place.clone(), items)
        }
        "keys" => {
            let keys = each(first?)?.into_iter().map(|(key, _)| key).collect();
            Tree::list_of(place.clone(), keys)
        }
        "values" => {
            Tree::list_of(place.clone(), first?.entries().iter().map(|(_, tree)| tree.clone()).collect())
        }
        "zipmap" => {
            let keys = first?.items().iter().filter_map(word);
            Tree::map_of(place.clone(), keys.zip(arguments.get(1)?.items().iter().cloned()).collect())
        }
        "range" => {
            let numbers: Option<Vec<i64>> = arguments.iter().map(Tree::as_int).collect();
            let (from, to, step) = match numbers?.as_slice() {
                [to] => (0, *to, 1),
                [from, to] => (*from, *to, 1),
                [from, to, step] if *step > 0 => (*from, *to, *step),
                _ => return None,
            };
            let numbers = (from..to).step_by(usize::try_from(step).ok()?).take(10_000);
            let tree = |number| Tree::new(place.clone(), Content::Number(number as f64));
            Tree::list_of(place.clone(), numbers.map(tree).collect())
        }
        "element" => {
            let items = first?.items();
            let index = usize::try_from(arguments.get(1)?.as_int()?).ok()?;
            items.get(index.checked_rem(items.len())?)?.clone()
        }
        "slice" => {
            let from = usize::try_from(arguments.get(1)?.as_int()?).ok()?;
            let to = usize::try_from(arguments.get(2)?.as_int()?).ok()?;
            Tree::list_of(place.clone(), first?.items().get(from..to)?.to_vec())
        }
        "lookup" => {
            let key = word(arguments.get(1)?)?;
            match first?.entries().iter().find(|(known, _)| *known == key) {
                Some((_, tree)) => tree.clone(),
                None => arguments.get(2)?.clone(),
            }
        }
        "contains" => {
            let wanted = arguments.get(1)?;
            let found = first?.items().iter().any(|item| equal(item, wanted) == Some(true));
            Tree::made_of(place.clone(), Content::Bool(found), &[wanted])
        }
        "alltrue" | "anytrue" => {
            let all: Option<Vec<bool>> = first?.items().iter().map(Tree::as_bool).collect();
            let all = all?;
            let value =
                if name == "alltrue" { all.iter().all(|yes| *yes) } else { all.iter().any(|yes| *yes) };
            Tree::new(place.clone(), Content::Bool(value))
        }
        "file" => {
            let (path, text) = frame.module.read(&word(first?)?)?;
            Tree::new(SourceLine::new(&path, 1), Content::Text(text))
        }
        "fileexists" => {
            let there = frame.module.read(&word(first?)?).is_some();
            Tree::new(place.clone(), Content::Bool(there))
        }
        "templatefile" => {
            let (path, text) = frame.module.read(&word(first?)?)?;
            let mut inner = frame.clone();
            for (key, tree) in arguments.get(1)?.entries() {
                inner = inner.with(key, tree.clone());
            }
            let template: Template = text.parse().ok()?;
            inner.filled(&template, &hcl::Source::of(&path, &text), arguments.get(1)?)?
        }
        "yamldecode" | "jsondecode" => {
            let source = first?;
            let (tree, problems) = parse::yaml(&source.place.file, &word(source)?);
            if !problems.is_empty() {
                return None;
            }
            tree?
        }
        "yamlencode" | "jsonencode" => {
            let source = first?;
            // What is known only in part stays a mapping, so that the rest of it can be used.
            let Some(value) = plain(source) else { return Some(source.clone()) };
            let text =
                if name == "yamlencode" { strata_yaml::plain::write(&value) } else { value.to_string() };
            Tree::made_of(source.place.clone(), Content::Text(text), &[source])
        }
        "sum" => {
            let items = first?.items();
            numeric("sum", items, place)?
        }
        "index" => {
            let wanted = arguments.get(1)?;
            let at = first?.items().iter().position(|item| equal(item, wanted) == Some(true))?;
            Tree::made_of(place.clone(), Content::Number(at as f64), &[wanted])
        }
        "setsubtract" | "setintersection" => {
            let others = arguments.get(1)?.items();
            let in_both = |item: &&Tree| others.iter().any(|other| equal(other, item) == Some(true));
            let keep = |item: &&Tree| in_both(item) == (name == "setintersection");
            Tree::list_of(place.clone(), first?.items().iter().filter(keep).cloned().collect())
        }
        "abs" | "ceil" | "floor" | "min" | "max" | "parseint" | "pow" => numeric(name, arguments, place)?,
        "cidrhost" | "cidrsubnet" | "cidrnetmask" => network(name, arguments, place)?,
        _ => textual(name, arguments, place)?,
    };
    Some(tree)
}

/// A value whose every part is known, without taking it.
pub(super) fn plain(tree: &Tree) -> Option<Json> {
    Some(match &tree.content {
        Content::Unknown(_) => return None,
        Content::Null => Json::Null,
        Content::Bool(value) => json!(value),
        Content::Number(number) if number.fract() == 0.0 => json!(*number as i64),
        Content::Number(number) => json!(number),
        Content::Text(text) => json!(text),
        Content::List(items) => Json::Array(items.iter().map(plain).collect::<Option<_>>()?),
        Content::Map(entries) => {
            let entries = entries.iter().map(|(key, tree)| Some((key.clone(), plain(tree)?)));
            Json::Object(entries.collect::<Option<_>>()?)
        }
    })
}

fn is_unknown(tree: &Tree) -> bool {
    matches!(tree.content, Content::Unknown(_))
}

fn flatten(tree: &Tree, flat: &mut Vec<Tree>) {
    match &tree.content {
        Content::List(items) => items.iter().for_each(|item| flatten(item, flat)),
        _ => flat.push(tree.clone()),
    }
}

fn convert(name: &str, tree: &Tree, place: &SourceLine) -> Option<Tree> {
    let content = match name {
        "tostring" => Content::Text(word(tree)?),
        "tonumber" => match &tree.content {
            Content::Text(text) => Content::Number(text.trim().parse().ok()?),
            _ => return Some(tree.clone()),
        },
        "tobool" => match &tree.content {
            Content::Text(text) => Content::Bool(text.parse().ok()?),
            _ => return Some(tree.clone()),
        },
        _ => return Some(tree.clone()),
    };
    Some(Tree::made_of(place.clone(), content, &[tree]))
}

fn made(text: String, arguments: &[Tree], place: &SourceLine) -> Tree {
    let parts: Vec<&Tree> = arguments.iter().collect();
    Tree::made_of(place.clone(), Content::Text(text), &parts)
}

fn numeric(name: &str, arguments: &[Tree], place: &SourceLine) -> Option<Tree> {
    let number = |tree: &Tree| match &tree.content {
        Content::Number(number) => Some(*number),
        Content::Text(text) => text.parse().ok(),
        _ => None,
    };
    let numbers: Vec<f64> = arguments.iter().map(number).collect::<Option<_>>()?;
    let first = *numbers.first()?;
    let value = match name {
        "abs" => first.abs(),
        "ceil" => first.ceil(),
        "floor" => first.floor(),
        "pow" => first.powf(*numbers.get(1)?),
        "sum" => numbers.iter().sum(),
        "min" => numbers.iter().copied().fold(first, f64::min),
        "max" => numbers.iter().copied().fold(first, f64::max),
        _ => {
            let radix =
                u32::try_from(arguments.get(1)?.as_int()?).ok().filter(|radix| (2..=36).contains(radix))?;
            i64::from_str_radix(&word(arguments.first()?)?, radix).ok()? as f64
        }
    };
    let parts: Vec<&Tree> = arguments.iter().collect();
    Some(Tree::made_of(place.clone(), Content::Number(value), &parts))
}

fn network(name: &str, arguments: &[Tree], place: &SourceLine) -> Option<Tree> {
    let prefix = word(arguments.first()?)?;
    let (address, length) = prefix.split_once('/')?;
    let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
    let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    let text = match name {
        "cidrnetmask" => Ipv4Addr::from(mask).to_string(),
        "cidrhost" => {
            let host = arguments.get(1)?.as_int()?;
            let base = if host < 0 { address | !mask } else { address & mask };
            let shift = if host < 0 { host + 1 } else { host };
            let number = i64::from(base) + shift;
            Ipv4Addr::from(u32::try_from(number).ok()?).to_string()
        }
        _ => {
            let more = u32::try_from(arguments.get(1)?.as_int()?).ok()?;
            let which = u32::try_from(arguments.get(2)?.as_int()?).ok()?;
            let longer = length.checked_add(more).filter(|longer| *longer <= 32)?;
            let base = (address & mask) | which.checked_shl(32 - longer)?;
            format!("{}/{longer}", Ipv4Addr::from(base))
        }
    };
    Some(made(text, arguments, place))
}

fn textual(name: &str, arguments: &[Tree], place: &SourceLine) -> Option<Tree> {
    let first = word(arguments.first()?);
    let second = arguments.get(1).and_then(word);
    let text = match name {
        "lower" => first?.to_lowercase(),
        "upper" => first?.to_uppercase(),
        "title" => {
            let mut letters = first?.chars().collect::<Vec<char>>();
            if let Some(letter) = letters.first_mut() {
                *letter = letter.to_ascii_uppercase();
            }
            letters.into_iter().collect()
        }
        "trimspace" => first?.trim().to_owned(),
        "chomp" => first?.trim_end_matches(['\n', '\r']).to_owned(),
        "trim" => {
            first?.trim_matches(|letter| second.as_deref().unwrap_or_default().contains(letter)).to_owned()
        }
        "trimprefix" => {
            let (text, prefix) = (first?, second?);
            text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
        }
        "trimsuffix" => {
            let (text, suffix) = (first?, second?);
            text.strip_suffix(&suffix).unwrap_or(&text).to_owned()
        }
        "replace" => {
            let (text, wanted) = (first?, second?);
            // Between slashes it is a pattern.
            if wanted.len() > 1 && wanted.starts_with('/') && wanted.ends_with('/') {
                return None;
            }
            text.replace(&wanted, &word(arguments.get(2)?)?)
        }
        "substr" => {
            let from = usize::try_from(arguments.get(1)?.as_int()?).ok()?;
            let length = usize::try_from(arguments.get(2)?.as_int()?).ok()?;
            first?.chars().skip(from).take(length).collect()
        }
        "basename" => first?.rsplit('/').next().unwrap_or_default().to_owned(),
        "dirname" => first?.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default(),
        "pathexpand" | "abspath" => first?,
        "startswith" | "endswith" | "strcontains" => {
            let (text, part) = (first?, second?);
            let yes = match name {
                "startswith" => text.starts_with(&part),
                "endswith" => text.ends_with(&part),
                _ => text.contains(&part),
            };
            let parts: Vec<&Tree> = arguments.iter().collect();
            return Some(Tree::made_of(place.clone(), Content::Bool(yes), &parts));
        }
        "join" => {
            let words: Option<Vec<String>> =
                arguments.get(1..)?.iter().flat_map(Tree::items).map(word).collect();
            words?.join(&first?)
        }
        "split" => {
            let (by, source) = (first?, arguments.get(1)?);
            let text = word(source)?;
            let part = |text: &str| Tree::made_of(place.clone(), Content::Text(text.to_owned()), &[source]);
            return Some(Tree::list_of(place.clone(), text.split(by.as_str()).map(part).collect()));
        }
        "format" => format(&first?, arguments.get(1..)?)?,
        "indent" => {
            let spaces = " ".repeat(usize::try_from(arguments.first()?.as_int_in(0..=64)?).ok()?);
            second?.replace('\n', &format!("\n{spaces}"))
        }
        _ => return None,
    };
    Some(made(text, arguments, place))
}

/// `%s`, `%d`, `%v`, and numbers with leading zeros.
fn format(pattern: &str, arguments: &[Tree]) -> Option<String> {
    let mut out = String::new();
    let mut values = arguments.iter();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let mut width = String::new();
        while let Some(digit) = letters.next_if(char::is_ascii_digit) {
            width.push(digit);
        }
        match letters.next()? {
            '%' => out.push('%'),
            's' | 'v' if width.is_empty() => out.push_str(&word(values.next()?)?),
            'q' => out.push_str(&format!("{:?}", word(values.next()?)?)),
            'd' => {
                let number = word(values.next()?)?;
                let wanted: usize = width.trim_start_matches('0').parse().unwrap_or(0).min(64);
                let fill = if width.starts_with('0') { "0" } else { " " };
                out.push_str(&fill.repeat(wanted.saturating_sub(number.len())));
                out.push_str(&number);
            }
            _ => return None,
        }
    }
    Some(out)
}
