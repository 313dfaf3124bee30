//! Tables: objects as rows of cells, for clients that print them and know nothing of their types.

mod cells;
mod path;

use serde_json::{Value, json};

use super::cluster::{Cluster, Moment};
use super::object::{list, text};
use super::resource::Resource;

/// A column, and where its cells come from.
#[derive(Debug, Clone)]
pub struct Column {
    name: String,
    kind: String,
    /// Above 0 only where more is asked for.
    priority: i64,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Made(fn(&Value, &Moment) -> Value),
    /// A path of a definition.
    Path(String),
}

/// The columns of a type.
pub fn columns(cluster: &Cluster, resource: &Resource) -> Vec<Column> {
    let mut all = vec![made(("Name", "string", 0, cells::name))];
    if resource.custom {
        all.extend(defined(cluster, resource));
    } else {
        all.extend(cells::of(&resource.plural).iter().map(|column| made(*column)));
    }
    all
}

type Made = (&'static str, &'static str, i64, fn(&Value, &Moment) -> Value);

fn made((name, kind, priority, cell): Made) -> Column {
    Column { name: name.to_owned(), kind: kind.to_owned(), priority, source: Source::Made(cell) }
}

/// What the definition of a type says about printing it.
fn defined(cluster: &Cluster, resource: &Resource) -> Vec<Column> {
    let key = super::resource::of("customresourcedefinitions")
        .key("", &format!("{}.{}", resource.plural, resource.group));
    let definition = cluster.store.get(&key);
    let versions = definition.map(|definition| list(definition, "/spec/versions")).unwrap_or_default();
    let version = versions.iter().find(|version| version["name"] == resource.version.as_str());
    let columns = version.map(|version| list(version, "/additionalPrinterColumns")).unwrap_or_default();
    if columns.is_empty() {
        return vec![made(("Age", "date", 0, cells::created))];
    }
    let column = |column: &Value| Column {
        name: text(column, "/name").to_owned(),
        kind: text(column, "/type").to_owned(),
        priority: column["priority"].as_i64().unwrap_or(0),
        source: Source::Path(text(column, "/jsonPath").to_owned()),
    };
    columns.iter().map(column).collect()
}

/// A table of objects. `include` is what clients ask to have beside the cells.
pub fn table(
    columns: &[Column],
    objects: &[Value],
    metadata: Value,
    include: Option<&str>,
    moment: &Moment,
) -> Value {
    let rows: Vec<Value> = objects.iter().map(|object| row(columns, object, include, moment)).collect();
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            let format = if column.name == "Name" { "name" } else { "" };
            json!({ "name": column.name, "type": column.kind, "format": format, "description": "", "priority": column.priority })
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

/// A table of one object.
pub fn single(columns: &[Column], object: Value, include: Option<&str>, moment: &Moment) -> Value {
    let meta = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
    table(columns, &[object], meta, include, moment)
}

fn row(columns: &[Column], object: &Value, include: Option<&str>, moment: &Moment) -> Value {
    let cells: Vec<Value> = columns
        .iter()
        .map(|column| match &column.source {
            Source::Made(cell) => cell(object, moment),
            Source::Path(path) => {
                path::find(object, path).map_or(Value::Null, |found| match column.kind.as_str() {
                    "string" | "date" if !found.is_string() => Value::String(found.to_string()),
                    _ => found.clone(),
                })
            }
        })
        .collect();
    let beside = match include {
        Some("None") => return json!({ "cells": cells }),
        Some("Object") => object.clone(),
        _ => {
            json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"] })
        }
    };
    json!({ "cells": cells, "object": beside })
}
