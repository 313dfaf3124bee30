//! A volume that Proxmox downloads.

use strata_resource::{Resource, Value};

use super::{Reading, not_rendered};
use crate::hcl::Expr;
use crate::project::Files;

pub(crate) fn image(resource: &Resource, files: &mut Files) -> Expr {
    let mut reading = Reading::new(&resource.spec);
    reading.put("node_name", "node");
    reading.put("datastore_id", "storage");
    reading.put("content_type", "content");
    reading.put("url", "url");
    // It is asked for on the node that downloads it.
    reading.take("shared");
    let volume = reading.take("volume").and_then(Value::as_text);
    reading.set("file_name", volume.and_then(|volume| volume.rsplit('/').next()).map(Expr::text));
    let checksum = reading.take("checksum").and_then(Value::as_text).and_then(|text| text.split_once(':'));
    if let Some((algorithm, hex)) = checksum {
        reading.set("checksum", Some(Expr::text(hex)));
        reading.set("checksum_algorithm", Some(Expr::text(algorithm)));
    }
    for field in reading.left() {
        not_rendered(resource, &[field], files);
    }
    Expr::Object(reading.entries)
}
