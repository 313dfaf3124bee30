//! What a decoder needs around it: where to report, what the field asks, and the world outside the files.

use std::borrow::Cow;

use strata_diagnostics::{Diagnostic, Diagnostics, FileId};

use crate::reference::{Reference, Source};
use crate::scalar::Scalar;
use crate::{Node, Rules, Shape, Spanned};

/// The world outside the source files. The library reads neither the environment nor the disk by itself.
pub trait Outside {
    /// A variable of the environment.
    fn env(&self, name: &str) -> Option<String>;

    /// The content of a file that is named in `from`; the error is for people.
    fn file(&self, path: &str, from: FileId) -> Result<String, String>;
}

/// A value from a file or variable: one line break at its end is not part of it.
pub fn without_final_break(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// A world in which nothing is set and no file exists.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOutside;

impl Outside for NoOutside {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &str, _: FileId) -> Result<String, String> {
        Err("no file can be read here".to_owned())
    }
}

pub struct Context<'d> {
    diagnostics: &'d mut Diagnostics,
    outside: &'d dyn Outside,
    references: Vec<Reference>,
    rules: Rules,
    /// The key whose value is being read, for messages.
    key: Option<&'static str>,
    /// The key that names the mapping being read, where one does.
    owner: Option<Spanned<String>>,
    /// What is being read is an overlay: nothing is required of it.
    partial: bool,
}

impl<'d> Context<'d> {
    pub fn new(diagnostics: &'d mut Diagnostics, outside: &'d dyn Outside) -> Self {
        Self {
            diagnostics,
            outside,
            references: Vec::new(),
            rules: Rules::default(),
            key: None,
            owner: None,
            partial: false,
        }
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        // The line of a secret is never shown, whatever is wrong with it.
        let private = diagnostic.private || self.rules.secret;
        self.diagnostics.push(Diagnostic { private, ..diagnostic });
    }

    /// What the field that is being read asks of its value.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Reads a field's value under its rules.
    pub(crate) fn within<T>(
        &mut self,
        key: &'static str,
        rules: Rules,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let rules = std::mem::replace(&mut self.rules, rules);
        let key = self.key.replace(key);
        let value = read(self);
        self.rules = rules;
        self.key = key;
        value
    }

    /// Reads the value of a key, so that what it lacks can be reported there.
    pub fn named<T>(&mut self, owner: &Spanned<String>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.owned(Some(owner.clone()), read)
    }

    pub(crate) fn owned<T>(
        &mut self,
        owner: Option<Spanned<String>>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let owner = std::mem::replace(&mut self.owner, owner);
        let value = read(self);
        self.owner = owner;
        value
    }

    pub(crate) fn owner(&self) -> Option<&Spanned<String>> {
        self.owner.as_ref()
    }

    /// Reads an overlay, which may lack anything.
    pub(crate) fn partially<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let partial = std::mem::replace(&mut self.partial, true);
        let value = read(self);
        self.partial = partial;
        value
    }

    /// Whether an overlay is being read, in which nothing takes a key away.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Remembers a reference, so that it can be checked and digested without knowing where it stands.
    pub fn refer(&mut self, reference: Reference) {
        // An overlay's references are read again where it is laid.
        if !self.partial {
            self.references.push(reference);
        }
    }

    /// Every reference that was read, in order.
    pub fn into_references(self) -> Vec<Reference> {
        self.references
    }

    /// The scalar of a node, fetched from outside if the node says so; anything else is reported as not being `shape`.
    pub fn scalar<'n>(&mut self, node: &'n Node, shape: &Shape) -> Option<Cow<'n, Scalar>> {
        if let Some(scalar) = node.as_scalar() {
            return Some(Cow::Borrowed(scalar));
        }
        match Reference::read(node, self) {
            Some(Ok(reference)) => self.fetch(reference).map(|text| Cow::Owned(Scalar::plain(text))),
            Some(Err(())) => None,
            None => {
                self.wrong_type(node, shape);
                None
            }
        }
    }

    fn fetch(&mut self, reference: Reference) -> Option<String> {
        let span = reference.span;
        let text = match &reference.source {
            Source::Secret(_) => {
                let message = format!("{} cannot be a secret: plans and the state show it", self.what());
                let hint = "write the value, or take it from `{env: NAME}` or `{file: path}`";
                self.push(Diagnostic::error("secret-not-allowed", message).at(span).hint(hint));
                return None;
            }
            Source::Env(name) => {
                self.outside.env(name).ok_or_else(|| format!("the variable `{name}` is not set"))
            }
            Source::File(path) => self.outside.file(path, span.file),
        };
        match text {
            Ok(text) => {
                self.refer(Reference { fetched: true, ..reference });
                Some(without_final_break(&text).to_owned())
            }
            Err(problem) => {
                self.push(Diagnostic::error("unresolved", problem).at(span));
                None
            }
        }
    }

    /// Reports that something else than `shape` stands here.
    pub fn wrong_type(&mut self, node: &Node, shape: &Shape) {
        self.wrong_type_hint(node, shape, None);
    }

    pub fn wrong_type_hint(&mut self, node: &Node, shape: &Shape, hint: Option<String>) {
        let plain = shape.describe(&Rules::default());
        let exact = shape.describe(&self.rules);
        let diagnostic =
            Diagnostic::error("wrong-type", format!("expected {plain}, found {}", self.found(node)));
        let label =
            if self.name().is_some() { format!("{} takes {exact}", self.what()) } else { String::new() };
        let almost = Reference::almost(node).map(|(typed, meant)| format!("`{typed}` looks like `{meant}`"));
        self.push(diagnostic.at_with(node.span, label).maybe_hint(hint.or(almost)));
    }

    fn found(&self, node: &Node) -> String {
        if self.rules.secret { node.describe_kind().to_owned() } else { node.describe() }
    }

    /// Reports a value of the right type that is not allowed.
    pub fn invalid(&mut self, node: &Node, message: impl Into<String>, hint: Option<String>) {
        self.push(Diagnostic::error("invalid-value", message.into()).at(node.span).maybe_hint(hint));
    }

    /// What is being read, by the nearest name there is.
    pub fn what(&self) -> String {
        self.name().map_or_else(|| "this value".to_owned(), |name| format!("`{}`", crate::shorten(name)))
    }

    fn name(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.value.as_str()).or(self.key)
    }
}
