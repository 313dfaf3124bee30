//! A machine configuration as the fields of a resource: a tree by document, in which every secret is one.
//!
//! What other resources own is left out: which version the components of Kubernetes have, and which image Talos is upgraded with.

use strata_resource::{Secret, Spec, Value as Field};
use strata_secret::{REDACTED, SecretString};

use crate::config::MachineConfig;
use crate::tree::Value;

/// `is_secret` tells of texts that are secret wherever they stand: what a patch of the user took from an encrypted file.
pub fn config_spec(config: &MachineConfig, is_secret: &dyn Fn(&str) -> bool) -> Spec {
    let mut documents = Spec::new();
    for document in config.without_versions().documents() {
        if let Some(Field::Map(tree)) = field(&document.to_value(), &document.to_redacted_value(), is_secret)
        {
            documents.insert(document.id().to_string(), Field::Map(tree));
        }
    }
    documents
}

/// The value beside its redacted twin: where the twin hides something, there is a secret. Nothing for what is not set.
fn field(value: &Value, shown: &Value, is_secret: &dyn Fn(&str) -> bool) -> Option<Field> {
    Some(match (value, shown) {
        (Value::Null, _) => return None,
        // Not set; what was set aside is left as this.
        (Value::Text(text), _) if text.is_empty() => return None,
        (Value::Text(text), shown)
            if shown.as_text() == Some(REDACTED) && text.as_str() != REDACTED || is_secret(text) =>
        {
            Field::Secret(Secret::new(SecretString::from(text.as_str())))
        }
        (Value::Text(text), _) => Field::text(text.as_str()),
        (Value::Bool(bool), _) => Field::Bool(*bool),
        (Value::Int(int), _) => i64::try_from(*int).map_or_else(|_| Field::Text(int.to_string()), Field::Int),
        (Value::Octal(number), _) => Field::Text(format!("0{number:o}")),
        (Value::Float(number), _) => Field::Text(number.to_string()),
        (Value::List(items), shown) => {
            let twins = shown.as_list().unwrap_or_default();
            let pairs = items.iter().enumerate();
            Field::List(
                pairs
                    .filter_map(|(at, item)| field(item, twins.get(at).unwrap_or(item), is_secret))
                    .collect(),
            )
        }
        (Value::Map(map), shown) => {
            let twins = shown.as_map();
            let fields = map.iter().filter_map(|(key, value)| {
                let twin = twins.and_then(|twins| twins.get(key)).unwrap_or(value);
                Some((key.clone(), field(value, twin, is_secret)?))
            });
            Field::Map(fields.collect())
        }
    })
}
