//! A volume that Proxmox downloads.

use strata_resource::{Resource, Value};

use super::Reading;
use crate::hcl::Expr;

pub(crate) fn image(resource: &Resource) -> Expr {
    let mut reading = Reading::new(&resource.spec);
    reading.put("node_name", "node");
    reading.put("datastore_id", "storage");
    reading.put("content_type", "content");
    reading.put("url", "url");
    let volume = reading.take("volume").and_then(Value::as_text);
    reading.set("file_name", volume.and_then(|volume| volume.rsplit('/').next()).map(Expr::text));
    let checksum = reading.take("checksum").and_then(Value::as_text).and_then(|text| text.split_once(':'));
    if let Some((algorithm, hex)) = checksum {
        reading.set("checksum", Some(Expr::text(hex)));
        reading.set("checksum_algorithm", Some(Expr::text(algorithm)));
    }
    Expr::Object(reading.entries)
}
