//! Any bytes as a vault, as YAML with vaulted values and as variables: reading must not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strata_secrets::tfvars;
use strata_secrets::vault::{self, Passwords};

fuzz_target!(|content: &[u8]| {
    let _ = vault::open(content, &Passwords::none());
    if let Ok(text) = std::str::from_utf8(content) {
        let _ = vault::encrypted_names(text);
        let _ = vault::decrypt_values(text, &Passwords::none());
        let _ = tfvars::values(text);
    }
});
