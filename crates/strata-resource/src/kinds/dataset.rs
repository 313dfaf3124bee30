//! A dataset on a TrueNAS; its parents are made with it, and it is never deleted while anything is in it.
//! ```text
//! dataset: Text "tank/k8s/homelab"   properties: {any property of ZFS: Text}
//! ```

use crate::rules::ChangeEffect::{InPlace, Replace};
use crate::rules::{FieldRule, KindRules};

pub(super) fn rules() -> KindRules {
    KindRules::new(vec![
        FieldRule::new("dataset", Replace).because("another name is another dataset"),
        FieldRule::new("properties.*", InPlace),
    ])
}
