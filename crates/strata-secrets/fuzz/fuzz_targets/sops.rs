//! Any bytes as a file of every SOPS format: reading, listing and opening must not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strata_secrets::Identities;
use strata_secrets::sops::{CreationRules, Format, SopsFile};

fuzz_target!(|content: &[u8]| {
    for format in [Format::Yaml, Format::Json, Format::Dotenv, Format::Ini, Format::Binary] {
        if let Ok(file) = SopsFile::parse(content, format) {
            let _ = file.names();
            let _ = file.plain_values();
            let _ = file.open(&Identities::none());
        }
    }
    if let Ok(text) = std::str::from_utf8(content) {
        let _ = CreationRules::parse(text);
    }
});
