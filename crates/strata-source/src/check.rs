//! Checks across files: what no single file can know.

use strata_diagnostics::Diagnostics;

use crate::repository::Repository;
use crate::world::World;

pub(crate) fn check(_repository: &Repository, _world: &dyn World, _diagnostics: &mut Diagnostics) {}
