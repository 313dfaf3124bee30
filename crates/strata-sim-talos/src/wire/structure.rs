//! Objects of no fixed form, as protobuf writes them.

use std::collections::HashMap;

use prost::{Message, Oneof};
use serde_json::Value;

#[derive(Clone, PartialEq, Message)]
pub struct Structure {
    #[prost(map = "string, message", tag = "1")]
    fields: HashMap<String, Element>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Element {
    #[prost(oneof = "Form", tags = "1, 2, 3, 4, 5, 6")]
    form: Option<Form>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Form {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Flag(bool),
    #[prost(message, tag = "5")]
    Map(Structure),
    #[prost(message, tag = "6")]
    List(List),
}

#[derive(Clone, PartialEq, Message)]
pub struct List {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Element>,
}

/// An object that stands alone.
#[derive(Clone, PartialEq, Message)]
pub struct Item {
    #[prost(message, optional, tag = "1")]
    pub object: Option<Structure>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Items {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<Item>,
}

impl Structure {
    /// Nothing if the value is no object.
    pub fn new(value: &Value) -> Self {
        let fields = value.as_object().into_iter().flatten();
        Self { fields: fields.map(|(key, value)| (key.clone(), element(value))).collect() }
    }
}

fn element(value: &Value) -> Element {
    let form = match value {
        Value::Null => Form::Null(0),
        Value::Bool(flag) => Form::Flag(*flag),
        Value::Number(number) => Form::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => Form::Text(text.clone()),
        Value::Array(list) => Form::List(List { values: list.iter().map(element).collect() }),
        Value::Object(_) => Form::Map(Structure::new(value)),
    };
    Element { form: Some(form) }
}
