//! What the code of a message means, as text.

use strata_diagnostics::{CodePage, nearest};

/// A line for a list of codes.
pub fn line(page: &CodePage) -> String {
    format!("{:22} {}", page.code, page.summary())
}

/// The page of a code as it stands in a message, `error[unknown-key]:`, or alone; or what is wrong, and what to do.
pub fn page(given: &str) -> Result<CodePage, (String, String)> {
    let code = given.trim_start_matches("error").trim_start_matches("warning").trim_matches(['[', ']', ':']);
    CodePage::of(code).ok_or_else(|| {
        let meant = nearest(code, CodePage::all().map(|page| page.code));
        let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
        let hint = hint.unwrap_or_else(|| "`strata explain` lists the codes".to_owned());
        (format!("no message has the code `{code}`"), hint)
    })
}
