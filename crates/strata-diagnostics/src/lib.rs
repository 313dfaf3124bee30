//! Diagnostic, span, source map, hint; rendered for people, as JSON and as SARIF.
