//! The parameter tables as data, in the words of the published API schema, so that both can be compared.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::api::Param;
use crate::api::param::{Format, Kind};
use crate::endpoints::router;

/// An endpoint and what it takes.
#[derive(Debug, Serialize)]
pub struct Table {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// `/nodes/{node}/qemu`.
    pub path: String,
    /// By name.
    pub parameters: BTreeMap<String, Facts>,
}

/// What is said of a parameter, or of a key in a property string.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// `string`, `integer`, `number`, `boolean` or `array`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// It may be left out.
    pub optional: bool,
    /// The values that it can have, if there are only these.
    pub values: Vec<&'static str>,
    /// The least number.
    pub minimum: Option<f64>,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// The least length of a text.
    pub min_length: Option<usize>,
    /// The greatest length of a text.
    pub max_length: Option<usize>,
    /// Another parameter that must be there too.
    pub requires: Option<&'static str>,
    /// Its text is checked by a pattern or a format.
    pub checked: bool,
    /// The keys of a property string; names that stand for other keys are left out.
    pub keys: Option<BTreeMap<String, Facts>>,
    /// What each element of an array is.
    pub item: Option<Box<Facts>>,
}

/// The table of every endpoint, in the order of their paths.
pub fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = router()
        .routes()
        .map(|route| Table {
            method: route.verb.name(),
            // What takes the rest of a path is one parameter in the schema too.
            path: route.template.replace("*}", "}"),
            parameters: named(&route.params),
        })
        .collect();
    tables.sort_by(|a, b| (&a.path, a.method).cmp(&(&b.path, b.method)));
    tables
}

fn named<'p>(params: impl IntoIterator<Item = &'p Param>) -> BTreeMap<String, Facts> {
    params.into_iter().map(|param| (param.name.to_string(), facts(param))).collect()
}

fn facts(param: &Param) -> Facts {
    let keys = match &param.format {
        Some(Format::Properties(schema)) => Some(named(schema().params())),
        _ => None,
    };
    let (kind, item) = match &param.kind {
        Kind::Text => ("string", None),
        Kind::Int => ("integer", None),
        Kind::Number => ("number", None),
        Kind::Bool => ("boolean", None),
        Kind::Array(item) => ("array", Some(Box::new(facts(item)))),
    };
    Facts {
        kind,
        optional: param.optional,
        values: param.values.to_vec(),
        minimum: param.min,
        maximum: param.max,
        min_length: param.min_len,
        max_length: param.max_len,
        requires: param.requires,
        checked: param.format.is_some() || param.pattern.is_some(),
        keys,
        item,
    }
}
