//! A value from outside the file, which knows whether it is secret.
//!
//! What came through `{secret}`, or stands in a field for secrets, cannot be read as ordinary text: it goes into a spec as a
//! secret, or into a document that is one as a whole.

use strata_resource::{Secret, Value};
use strata_secret::SecretString;
use strata_yaml::Reference;

pub(crate) struct Resolved {
    plain: SecretString,
    secret: bool,
}

impl Resolved {
    pub(crate) fn new(reference: &Reference, plain: SecretString) -> Self {
        Self { plain, secret: reference.is_secret() }
    }

    /// What is written in the source itself.
    pub(crate) fn literal(text: &str) -> Self {
        Self { plain: SecretString::from(text), secret: false }
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.secret
    }

    /// As a field of a spec.
    pub(crate) fn into_value(self) -> Value {
        match self.secret {
            true => Value::Secret(Secret::new(SecretString::from(self.plain.expose().trim_end()))),
            false => Value::text(self.plain.expose().trim_end()),
        }
    }

    /// Its lines that hold something, each as secret as the whole.
    pub(crate) fn into_lines(self) -> Vec<Self> {
        let lines = self.plain.expose().lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| Self { plain: SecretString::from(line), secret: self.secret }).collect()
    }

    /// For what is a secret as a whole, whatever is in it.
    pub(crate) fn into_secret(self) -> SecretString {
        self.plain
    }
}
