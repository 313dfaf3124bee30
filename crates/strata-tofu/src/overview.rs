//! What a folder of OpenTofu files says of itself: variables, backend, encryption.

use std::path::Path;

use hcl_edit::structure::Body;

use strata_diagnostics::{LARGEST_FILE, read_text_file};

/// As far as the files can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// The variables that it declares.
    pub variables: Vec<String>,
    /// The kind of its backend.
    pub backend: Option<String>,
    /// The HTTP backend's block says where the state is.
    pub backend_has_address: bool,
    /// It has an `encryption` block of its own.
    pub is_encrypted: bool,
}

impl Overview {
    pub fn read(folder: &Path) -> Self {
        let mut overview = Self::default();
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "tf"))
            .collect();
        paths.sort();
        for path in paths {
            if let Ok(body) = read_text_file(&path, LARGEST_FILE).unwrap_or_default().parse::<Body>() {
                overview.add(&body);
            }
        }
        overview
    }

    fn add(&mut self, body: &Body) {
        for block in body.blocks() {
            match (block.ident.as_str(), block.labels.first()) {
                ("variable", Some(name)) => self.variables.push(name.as_str().to_owned()),
                ("terraform", _) => {
                    for inner in block.body.blocks() {
                        match (inner.ident.as_str(), inner.labels.first()) {
                            ("backend", Some(kind)) => {
                                self.backend = Some(kind.as_str().to_owned());
                                self.backend_has_address = inner.body.has_attribute("address");
                            }
                            ("encryption", _) => self.is_encrypted = true,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_looked_over() {
        let mut overview = Overview::default();
        let text = "variable \"a\" {}\nterraform {\n  backend \"http\" {\n    address = \"x\"\n  }\n  encryption {}\n}\n";
        overview.add(&text.parse().unwrap());
        assert_eq!(
            overview,
            Overview {
                variables: vec!["a".into()],
                backend: Some("http".into()),
                backend_has_address: true,
                is_encrypted: true
            }
        );
    }
}
