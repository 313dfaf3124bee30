//! A VM that is only cloned.

use strata_resource::{MadeFrom, Shape, Shown, kind};

use super::guest::{self, GUEST};
use super::vm;

kind! {
    /// A template that VMs are cloned from.
    "template" {
        called: "template {vmid} on {node}",
        shares: &[vm::FIELDS, guest::FIELDS],
        made_from: Some(MadeFrom {
            follows: Some("its image changed: a template is what it was made from"),
            ..guest::MADE_FROM
        }),
        shown: Shown { shape: Shape::Template, ..GUEST.shown },
        ..GUEST
    }
}
