//! The kinds of every provider, registered before anything is read.

/// Registers the kinds of every provider.
pub fn register() {
    strata_proxmox::kinds::register();
    strata_truenas::kinds::register();
    strata_cluster::kinds::register();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use strata_resource::registered_kinds;

    #[test]
    fn every_kind_that_is_drawn_has_a_provider_and_the_other_way_round() {
        super::register();
        let drawn: BTreeSet<&str> = strata_blueprint::kinds::ALL.iter().map(|kind| kind.as_str()).collect();
        let registered: BTreeSet<&str> = registered_kinds().iter().map(|table| table.name).collect();
        assert_eq!(drawn, registered);
    }

    #[test]
    fn every_table_is_whole() {
        super::register();
        for table in registered_kinds() {
            let fields: BTreeSet<&str> = table.all_fields().map(|field| field.path).collect();
            assert_eq!(fields.len(), table.all_fields().count(), "{}: a field has two rules", table.name);
            let own = |field: &&str| fields.contains(*field);
            let named = table
                .identity
                .iter()
                .chain(table.shown.in_headline)
                .chain(table.content.iter().map(|it| &it.name));
            for field in named {
                assert!(own(field), "{}: `{field}` is no field", table.name);
            }
            assert!(!table.identity.is_empty() && !table.proof.is_empty(), "{}", table.name);
            for field in table.all_fields() {
                assert!(!field.help.trim().is_empty(), "{}: `{}` has no help", table.name, field.path);
            }
        }
    }
}
