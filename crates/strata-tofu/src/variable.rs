//! The inputs of a module as tables: from one of them come its `variables.tf`, the object that a stack passes through, and the tables
//! of its README.

use crate::hcl::{Block, Body, Expr, Item};

/// The type of an input.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type {
    Text,
    Number,
    Bool,
    List(&'static Type),
    Map(&'static Type),
    Object(&'static [Attribute]),
}

/// An attribute of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) required: bool,
}

/// What an input is if nobody gives one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Default {
    None,
    Null,
    Bool(bool),
    Int(i64),
    Text(&'static str),
    EmptyList,
    EmptyMap,
}

/// An input of a module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) description: &'static str,
    pub(crate) default: Default,
    pub(crate) sensitive: bool,
    /// A condition on `var.<name>`, and what is said where it does not hold.
    pub(crate) validation: Option<(&'static str, &'static str)>,
}

/// An optional attribute.
pub(crate) const fn may(name: &'static str, kind: Type) -> Attribute {
    Attribute { name, kind, required: false }
}

/// An attribute that must be there.
pub(crate) const fn must(name: &'static str, kind: Type) -> Attribute {
    Attribute { name, kind, required: true }
}

impl Variable {
    pub(crate) const fn required(name: &'static str, kind: Type, description: &'static str) -> Self {
        Self { name, kind, description, default: Default::None, sensitive: false, validation: None }
    }

    pub(crate) const fn optional(name: &'static str, kind: Type, description: &'static str) -> Self {
        Self { default: Default::Null, ..Self::required(name, kind, description) }
    }

    pub(crate) const fn or(self, default: Default) -> Self {
        Self { default, ..self }
    }

    pub(crate) const fn sensitive(self) -> Self {
        Self { sensitive: true, ..self }
    }

    pub(crate) const fn valid_if(self, condition: &'static str, message: &'static str) -> Self {
        Self { validation: Some((condition, message)), ..self }
    }

    fn is_required(&self) -> bool {
        matches!(self.default, Default::None)
    }

    /// The block that declares it.
    pub(crate) fn block(&self) -> Block {
        let mut body = Body::new();
        body.attribute("description", self.description).attribute("type", self.kind.expr());
        match self.default {
            Default::None => {}
            default => {
                body.attribute("default", default.expr());
            }
        }
        if self.sensitive {
            body.attribute("sensitive", true);
        }
        // A stack passes null for what it does not say: then the default holds.
        if !matches!(self.default, Default::None | Default::Null) {
            body.attribute("nullable", false);
        }
        if let Some((condition, message)) = self.validation {
            body.block("validation", &[], |body| {
                body.attribute("condition", Expr::raw(condition)).attribute("error_message", message);
            });
        }
        Block { kind: "variable".to_owned(), labels: vec![self.name.to_owned()], body }
    }
}

impl Default {
    pub(crate) fn expr(self) -> Expr {
        match self {
            Self::None | Self::Null => Expr::Null,
            Self::Bool(value) => Expr::Bool(value),
            Self::Int(value) => Expr::Int(value),
            Self::Text(text) => Expr::text(text),
            Self::EmptyList => Expr::List(Vec::new()),
            Self::EmptyMap => Expr::Object(Vec::new()),
        }
    }
}

impl Type {
    pub(crate) fn expr(self) -> Expr {
        match self {
            Self::Text => Expr::raw("string"),
            Self::Number => Expr::raw("number"),
            Self::Bool => Expr::raw("bool"),
            Self::List(item) => Expr::Call("list", vec![item.expr()]),
            Self::Map(item) => Expr::Call("map", vec![item.expr()]),
            Self::Object(attributes) => object(attributes.iter().map(|attribute| {
                (attribute.name.to_owned(), optional(attribute.kind.expr(), !attribute.required))
            })),
        }
    }
}

fn optional(kind: Expr, optional: bool) -> Expr {
    if optional { Expr::Call("optional", vec![kind]) } else { kind }
}

fn object(entries: impl Iterator<Item = (String, Expr)>) -> Expr {
    Expr::Call("object", vec![Expr::Object(entries.collect())])
}

/// `variables.tf`.
pub(crate) fn declarations(variables: &[Variable]) -> Body {
    let mut body = Body::new();
    for variable in variables {
        if !body.items.is_empty() {
            body.blank();
        }
        body.items.push(Item::Block(variable.block()));
    }
    body
}

/// The type of a map of such modules: what a stack declares to pass through. Defaults stay with the module.
pub(crate) fn map_of(variables: &[Variable]) -> Expr {
    let plain = variables.iter().filter(|variable| !variable.sensitive);
    let entries = plain
        .map(|variable| (variable.name.to_owned(), optional(variable.kind.expr(), !variable.is_required())));
    Expr::Call("map", vec![object(entries)])
}
