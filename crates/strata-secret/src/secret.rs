//! Text and bytes that are wiped when dropped and that cannot be printed or serialised.

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// A secret text. Read it with [`SecretString::expose`], at the last moment and nowhere else.
#[derive(Clone, Default)]
pub struct SecretString(Zeroizing<String>);

impl SecretString {
    /// Takes the value over; it is wiped from memory when it is dropped.
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The text itself. Each call is a place where the secret could leave: keep them few and easy to find.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for SecretString {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}

impl From<&str> for SecretString {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<Zeroizing<String>> for SecretString {
    fn from(value: Zeroizing<String>) -> Self {
        Self(value)
    }
}

/// Compares in constant time for values of equal length.
impl PartialEq for SecretString {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for SecretString {}

/// Secret bytes: a key, a binary file. Read them with [`SecretBytes::expose`].
#[derive(Clone, Default)]
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Takes the value over; it is wiped from memory when it is dropped.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The bytes themselves; see [`SecretString::expose`].
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The same bytes as text, or the bytes back if they are not UTF-8.
    pub fn into_string(self) -> Result<SecretString, SecretBytes> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => Ok(SecretString::new(text)),
            Err(_) => Err(self),
        }
    }
}

impl From<Vec<u8>> for SecretBytes {
    fn from(value: Vec<u8>) -> Self {
        Self::new(value)
    }
}

impl From<&[u8]> for SecretBytes {
    fn from(value: &[u8]) -> Self {
        Self::new(value)
    }
}

impl From<SecretString> for SecretBytes {
    fn from(value: SecretString) -> Self {
        Self::new(value.expose().as_bytes())
    }
}

/// Compares in constant time for values of equal length.
impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for SecretBytes {}

#[cfg(test)]
mod tests {
    use super::*;

    // A type has at most one `Probe` implementation unless it implements the trait asked for; then there are two
    // and the call is ambiguous. So this fails to compile the day a secret becomes printable or serialisable.
    macro_rules! assert_not_impl {
        ($type:ty: $bound:path) => {
            const _: fn() = || {
                trait Probe<Mark> {
                    fn probe() {}
                }
                impl<T: ?Sized> Probe<()> for T {}
                struct Implemented;
                impl<T: ?Sized + $bound> Probe<Implemented> for T {}
                <$type as Probe<_>>::probe();
            };
        };
    }

    assert_not_impl!(SecretString: std::fmt::Debug);
    assert_not_impl!(SecretString: std::fmt::Display);
    assert_not_impl!(SecretString: serde::Serialize);
    assert_not_impl!(SecretString: std::ops::Deref);
    assert_not_impl!(SecretString: AsRef<str>);
    assert_not_impl!(SecretBytes: std::fmt::Debug);
    assert_not_impl!(SecretBytes: serde::Serialize);
    assert_not_impl!(SecretBytes: std::ops::Deref);
    assert_not_impl!(crate::DigestKey: std::fmt::Debug);
    assert_not_impl!(crate::DigestKey: serde::Serialize);
    assert_not_impl!(crate::Redactor: std::fmt::Debug);

    #[test]
    fn compares_by_content() {
        assert!(SecretString::from("a") == SecretString::new("a".to_owned()));
        assert!(SecretString::from("a") != SecretString::from("b"));
        assert!(SecretString::from("a") != SecretString::from("ab"));
        assert!(SecretBytes::new(vec![1, 2]) == SecretBytes::from(&[1u8, 2][..]));
    }

    #[test]
    fn bytes_become_text_only_if_they_are_text() {
        assert_eq!(SecretBytes::new("ü").into_string().ok().expect("UTF-8").expose(), "ü");
        assert_eq!(SecretBytes::new(vec![0xff]).into_string().err().expect("not UTF-8").expose(), [0xff]);
    }
}
