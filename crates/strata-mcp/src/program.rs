//! Calls as runs of a program.

use std::path::PathBuf;
use std::process::Stdio;

use async_trait::async_trait;
use tokio::process::Command;

use crate::call::{Ended, Runner};

/// A program that is run once for each call: a run that is cancelled, or fails in whatever way, takes nothing else along.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// The folder that it works in.
    pub folder: PathBuf,
    /// The environment of calls that name none.
    pub environment: Option<String>,
}

#[async_trait]
impl Runner for Program {
    async fn run(&self, line: Vec<String>) -> Ended {
        let named = line.iter().any(|word| word.starts_with("--environment="));
        let environment = self.environment.as_ref().filter(|_| !named);
        let output = Command::new(&self.path)
            .arg("--no-color")
            .args(environment.map(|name| format!("--environment={name}")))
            .args(&line)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        match output {
            Ok(output) => {
                let said = [output.stdout, output.stderr];
                let said = said.map(|text| String::from_utf8_lossy(&text).into_owned());
                Ended { code: output.status.code(), text: said.concat() }
            }
            Err(error) => {
                Ended { code: None, text: format!("`{}` cannot be run: {error}", self.path.display()) }
            }
        }
    }
}
