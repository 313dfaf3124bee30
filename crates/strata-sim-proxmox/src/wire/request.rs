//! Reads parameters out of queries, forms and JSON bodies, with the original's oddities.

use percent_encoding::percent_decode;
use serde_json::Value;

use crate::api::{Arg, Args};

/// Where the original's messages say they come from.
const SOURCE: &str = "/usr/share/perl5/PVE/APIServer/AnyEvent.pm";

/// Pairs separated by `&` or `;`; a repeated key becomes a list; a key without `=` is null.
pub(crate) fn form(data: &[u8]) -> Args {
    let mut args = Args::default();
    for pair in data.split(|b| matches!(b, b'&' | b';')).filter(|p| !p.is_empty()) {
        let mut parts = pair.splitn(2, |b| *b == b'=');
        let key = decode(parts.next().unwrap_or_default());
        let Some(rest) = parts.next() else {
            args.0.insert(key, Arg::Null);
            continue;
        };
        // A second `=` ends the value: that is how splitting goes there.
        let raw = rest.split(|b| *b == b'=').next().unwrap_or_default();
        let value = Arg::Text(decode(raw));
        let value = match args.0.shift_remove(&key) {
            None | Some(Arg::Null) => value,
            Some(Arg::List(mut items)) => {
                items.push(value);
                Arg::List(items)
            }
            Some(first) => Arg::List(vec![first, value]),
        };
        args.0.insert(key, value);
    }
    args
}

fn decode(raw: &[u8]) -> String {
    let spaced: Vec<u8> = raw.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
    let bytes: Vec<u8> = percent_decode(&spaced).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A JSON object, or the plain text of the 500 that answers anything else.
pub(crate) fn json(body: &[u8]) -> Result<Args, String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(map)) => Ok(Args(map.iter().map(|(k, v)| (k.clone(), Arg::from_json(v))).collect())),
        Ok(_) => Err(format!("Not a HASH reference at {SOURCE} line 978.\n")),
        Err(_) => Err(format!("{} at {SOURCE} line 934.\n", complaint(body))),
    }
}

/// What the original's JSON parser says about a malformed body.
fn complaint(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let inside = text.trim_start().strip_prefix('{').map(str::trim_start);
    let (what, rest) = match inside {
        Some(rest) if !rest.is_empty() && !rest.starts_with('"') => ("'\"' expected", rest),
        Some(_) => ("unexpected end of string while parsing JSON string", ""),
        None => {
            ("malformed JSON string, neither tag, array, object, number, string or atom", text.trim_start())
        }
    };
    let offset = text.chars().count() - rest.chars().count();
    let before = if rest.is_empty() { "(end of string)".to_owned() } else { shorten(rest) };
    format!("{what}, at character offset {offset} (before \"{before}\")")
}

fn shorten(rest: &str) -> String {
    if rest.chars().count() > 20 {
        rest.chars().take(20).collect::<String>() + "..."
    } else {
        rest.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_split_the_way_the_api_does() {
        let args = form(b"poolid=semi;comment=a+b%2Bc&comment=%3B");
        assert_eq!(args.text("poolid"), Some("semi"));
        let both = Arg::List(vec![Arg::Text("a b+c".into()), Arg::Text(";".into())]);
        assert_eq!(args.get("comment"), Some(&both));
        assert_eq!(form(b"c=%FCber").text("c"), Some("\u{fffd}ber"));
        let odd = form(b"groups=&append");
        assert_eq!((odd.get("groups"), odd.get("append")), (Some(&Arg::Text(String::new())), None));
    }

    #[test]
    fn malformed_json_is_told_as_perl_tells_it() {
        let text = json(b"{bad").unwrap_err();
        assert!(text.starts_with("'\"' expected, at character offset 1 (before \"bad\") at /"), "{text}");
        assert!(json(b"[\"a\"]").unwrap_err().starts_with("Not a HASH reference"));
        assert_eq!(json(br#"{"onboot":true,"vmid":900}"#).unwrap().text("onboot"), Some("1"));
    }
}
