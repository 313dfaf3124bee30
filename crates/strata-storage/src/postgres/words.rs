//! What a connection string says about TLS, in the words of PostgreSQL's own clients; the driver knows only half of them.

use percent_encoding::percent_decode_str;

/// How much the server has to prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    /// TLS if the server has it.
    Prefer,
    Require,
    /// An authority vouches for it, under whatever name.
    VerifyCa,
    VerifyFull,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TlsWords {
    pub(super) mode: Option<TlsMode>,
    /// A file, or `system`.
    pub(super) root: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
}

impl TlsWords {
    /// Takes the words out of a connection string, `postgres://…` or `host=… dbname=…`; gives the rest of it too.
    pub(super) fn split(connection: &str) -> Result<(Self, String), String> {
        let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| connection.starts_with(scheme));
        let mut words = Self::default();
        let rest = if is_url { words.take_url(connection)? } else { words.take_pairs(connection)? };
        Ok((words, rest))
    }

    /// False if it says nothing about TLS.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "sslmode" => {
                self.mode = Some(match value {
                    "disable" => TlsMode::Disable,
                    "allow" | "prefer" => TlsMode::Prefer,
                    "require" => TlsMode::Require,
                    "verify-ca" => TlsMode::VerifyCa,
                    "verify-full" => TlsMode::VerifyFull,
                    _ => {
                        return Err(format!(
                            "`sslmode` is `disable`, `prefer`, `require`, `verify-ca` or `verify-full`, not `{value}`"
                        ));
                    }
                });
            }
            "sslrootcert" => self.root = Some(value.to_owned()),
            "sslcert" => self.certificate = Some(value.to_owned()),
            "sslkey" => self.key = Some(value.to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_url(&mut self, text: &str) -> Result<String, String> {
        // A password may hold a question mark.
        let host = text.find('@').unwrap_or(0);
        let Some(question) = text[host..].find('?') else { return Ok(text.to_owned()) };
        let (front, query) = text.split_at(host + question);
        let mut kept = Vec::new();
        for pair in query[1..].split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value =
                percent_decode_str(value).decode_utf8().map_err(|_| format!("`{pair}` is no text"))?;
            if !self.take(name, &value)? {
                kept.push(pair);
            }
        }
        Ok(if kept.is_empty() { front.to_owned() } else { format!("{front}?{}", kept.join("&")) })
    }

    fn take_pairs(&mut self, text: &str) -> Result<String, String> {
        let mut kept = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            // The driver has words for what is wrong with the rest.
            let Some((name, after)) = rest.split_once('=') else {
                kept.push(rest.to_owned());
                break;
            };
            let after = after.trim_start();
            let Some((value, end)) = read_value(after) else {
                return Err(format!("the quote of `{}` has no end", name.trim()));
            };
            if !self.take(name.trim(), &value)? {
                kept.push(format!("{}={}", name.trim(), &after[..end]));
            }
            rest = after[end..].trim_start();
        }
        Ok(kept.join(" "))
    }
}

/// A value and how many bytes it takes; none if it is quoted and has no end.
fn read_value(text: &str) -> Option<(String, usize)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            '\'' if quoted => return Some((value, at + 1)),
            _ if !quoted && letter.is_whitespace() => return Some((value, at)),
            _ => value.push(letter),
        }
    }
    (!quoted).then_some((value, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(mode: TlsMode, root: &str) -> TlsWords {
        TlsWords { mode: Some(mode), root: Some(root.to_owned()), ..TlsWords::default() }
    }

    #[test]
    fn an_address_is_split() {
        let text = "postgres://me:a?b@db.example/x?sslmode=verify-ca&connect_timeout=3&sslrootcert=%2Fa%20b";
        let (found, rest) = TlsWords::split(text).unwrap();
        assert_eq!(found, words(TlsMode::VerifyCa, "/a b"));
        assert_eq!(rest, "postgres://me:a?b@db.example/x?connect_timeout=3");
        let (found, rest) = TlsWords::split("postgresql:///x?sslcert=c&sslkey=k").unwrap();
        assert_eq!((found.certificate.as_deref(), found.key.as_deref()), (Some("c"), Some("k")));
        assert_eq!(rest, "postgresql:///x");
    }

    #[test]
    fn pairs_are_split() {
        let text = r"host = db.example sslrootcert='/a b/it\'s' sslmode=verify-full password='x y'";
        let (found, rest) = TlsWords::split(text).unwrap();
        assert_eq!(found, words(TlsMode::VerifyFull, "/a b/it's"));
        assert_eq!(rest, "host=db.example password='x y'");
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(TlsWords::split("postgres://a/b?sslmode=maybe").unwrap_err().contains("`maybe`"));
        assert!(TlsWords::split("host='a").is_err());
        assert!(TlsWords::split("postgres://a/b?sslcert=%ff").is_err());
        assert_eq!(TlsWords::split("").unwrap(), (TlsWords::default(), String::new()));
        assert_eq!(TlsWords::split("nonsense").unwrap().1, "nonsense");
    }
}
