//! How single values are written: booleans as 0 and 1, lists with a separator, MACs in upper case.

use strata_resource::Value;

use crate::api::url_encode;

/// The written form of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is.
    Text,
    /// A whole number.
    Int,
    /// `1` and `0`.
    Bool,
    /// `on`, or `ignore` and absent.
    OnOff,
    /// A number with a fraction, kept as text without needless zeros.
    Decimal,
    /// Upper case.
    Mac,
    /// Separated by this character.
    List(char),
    /// Lower case, sorted, unique, separated by `;`.
    Tags,
    /// Separated by white space or commas.
    Words,
    /// `order=scsi0;net0`
    Boot,
    /// A list with commas; `0` is none and `1` the default.
    Hotplug,
    /// Lines, URL-encoded as a whole.
    SshKeys,
    /// Lines.
    Lines,
    /// Sent and never read back.
    Secret,
}

/// Why a value cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadValue(pub(crate) String);

impl Form {
    pub(crate) fn read(self, text: &str) -> Option<Value> {
        let texts = |texts: &mut dyn Iterator<Item = &str>| {
            Some(Value::List(texts.filter(|text| !text.is_empty()).map(Value::text).collect()))
        };
        match self {
            Self::Text => Some(Value::text(text)),
            Self::Int => text.trim().parse().ok().map(Value::Int),
            Self::Bool => match text.trim() {
                "1" | "on" | "yes" | "true" => Some(Value::Bool(true)),
                "0" | "off" | "no" | "false" => Some(Value::Bool(false)),
                _ => None,
            },
            Self::OnOff => Some(Value::Bool(text == "on")),
            Self::Decimal => Some(Value::Text(plain_decimal(text))),
            Self::Mac => Some(Value::Text(text.to_ascii_uppercase())),
            Self::List(separator) => texts(&mut text.split(separator).map(str::trim)),
            Self::Tags => Some(Value::List(tags(text).into_iter().map(Value::Text).collect())),
            Self::Words => texts(&mut text.split([' ', ',', ';'])),
            Self::Boot => match text.trim() {
                "" => Some(Value::List(Vec::new())),
                // The old form by letters says nothing about slots.
                order => texts(&mut order.strip_prefix("order=")?.split(';')),
            },
            Self::Hotplug => match text {
                "0" => Some(Value::List(Vec::new())),
                "1" => Self::Hotplug.read("network,disk,usb"),
                list => texts(&mut list.split(',')),
            },
            Self::SshKeys => {
                let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
                Self::Lines.read(&decoded)
            }
            Self::Lines => texts(&mut text.lines().map(str::trim)),
            Self::Secret => None,
        }
    }

    pub(crate) fn write(self, value: &Value) -> Result<String, BadValue> {
        Ok(match (self, value) {
            (_, Value::Input { address, output }) => {
                return Err(BadValue(format!("`{output}` of `{address}` is not known yet")));
            }
            // Any value may be one, by where it came from.
            (form, Value::Secret(secret)) => match secret.plain() {
                Some(plain) => form.write(&Value::text(plain.expose()))?,
                None => return Err(BadValue("the secret itself is not at hand, only its digest".to_owned())),
            },
            (Self::Secret, Value::Text(text)) => text.clone(),
            (_, Value::Unknown | Value::Map(_)) => {
                return Err(BadValue("it has no single value that could be sent".to_owned()));
            }
            (Self::OnOff, Value::Bool(on)) => if *on { "on" } else { "ignore" }.to_owned(),
            (_, Value::Bool(on)) => if *on { "1" } else { "0" }.to_owned(),
            (_, Value::Int(int)) => int.to_string(),
            (Self::Mac, Value::Text(mac)) => mac.to_ascii_uppercase(),
            (_, Value::Text(text)) => text.clone(),
            (form, Value::List(list)) => form.write_list(list)?,
        })
    }

    fn write_list(self, list: &[Value]) -> Result<String, BadValue> {
        let texts: Vec<String> =
            list.iter().map(|value| Self::Text.write(value)).collect::<Result<_, _>>()?;
        Ok(match self {
            Self::List(separator) => texts.join(&separator.to_string()),
            Self::Tags => tags(&texts.join(";")).join(";"),
            Self::Words => texts.join(" "),
            Self::Boot => format!("order={}", texts.join(";")),
            Self::Hotplug if texts.is_empty() => "0".to_owned(),
            Self::Hotplug => texts.join(","),
            Self::SshKeys => url_encode(&texts.join("\n")),
            Self::Lines => texts.join("\n"),
            _ => return Err(BadValue("a single value is wanted, not a list".to_owned())),
        })
    }
}

/// Tags in the form that they are stored in by every call but one.
fn tags(text: &str) -> Vec<String> {
    let mut tags: Vec<String> =
        text.split([';', ',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_lowercase).collect();
    tags.sort();
    tags.dedup();
    tags
}

/// `1.50` and `1.5` are the same, and so are `2.0` and `2`.
fn plain_decimal(text: &str) -> String {
    let text = text.trim();
    if !text.contains('.') {
        return text.to_owned();
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Value {
        Value::List(texts.iter().map(|text| Value::text(*text)).collect())
    }

    #[test]
    fn what_the_server_made_of_it_reads_as_what_was_meant() {
        for (form, text, value) in [
            (Form::Tags, "Zeta;alpha,beta alpha", list(&["alpha", "beta", "zeta"])),
            (Form::Tags, " ", list(&[])),
            (Form::Boot, "order=scsi0;ide2;net0", list(&["scsi0", "ide2", "net0"])),
            (Form::Boot, " ", list(&[])),
            (Form::Hotplug, "1", list(&["network", "disk", "usb"])),
            (Form::Hotplug, "0", list(&[])),
            (Form::Words, "192.0.2.53 192.0.2.54", list(&["192.0.2.53", "192.0.2.54"])),
            (Form::SshKeys, "ssh-ed25519%20AAAA%20a%40b%0A", list(&["ssh-ed25519 AAAA a@b"])),
            (Form::Mac, "bc:24:11:00:00:0f", Value::text("BC:24:11:00:00:0F")),
            (Form::Decimal, "1.50", Value::text("1.5")),
            (Form::OnOff, "on", Value::Bool(true)),
        ] {
            assert_eq!(form.read(text), Some(value), "{form:?} {text}");
        }
        assert_eq!(Form::Boot.read("cdn"), None);
        assert_eq!(Form::Secret.read("**********"), None);
    }

    #[test]
    fn keys_are_encoded_once_here_and_once_more_in_the_form() {
        let keys = list(&["ssh-ed25519 AAAA+/= a@b", "ssh-rsa B c"]);
        let text = Form::SshKeys.write(&keys).unwrap();
        assert_eq!(text, "ssh-ed25519%20AAAA%2B%2F%3D%20a%40b%0Assh-rsa%20B%20c");
        assert_eq!(Form::SshKeys.read(&text), Some(keys));
    }

    #[test]
    fn what_cannot_be_sent_says_so() {
        assert!(Form::Text.write(&Value::Unknown).is_err());
        assert!(Form::Text.write(&list(&["a"])).is_err());
        let known_only_by_digest: Value =
            serde_json::from_str(&format!("{{\"$secret\": \"hmac:{}\"}}", "0".repeat(64))).unwrap();
        assert!(Form::Secret.write(&known_only_by_digest).is_err());
    }
}
