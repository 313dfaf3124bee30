//! The pipelines of a repository, as files: a plan of each request, the apply of what was approved, drift every night, newer versions every quarter.
//!
//! [`files`] makes them from templates that are data (`templates/`), for one [`Forge`] and with a few [`Settings`]; [`verb`] writes them into a repository.
//!
//! # What always holds
//!
//! - No action, image or script of others is part of a pipeline: git, the tools of the system, and the program whose checksum stands in the file.
//! - A job has the secrets and the permissions that its command needs, and a job for requests from forks has none.
//! - What stands in a file is never overwritten before it was shown and somebody agreed. What is as it should be is not written.
//!
//! ```
//! use strata_pipelines::{Forge, Settings, files};
//!
//! let settings = Settings { sha256: "0".repeat(64), ..Settings::default() };
//! let made = files(Forge::Gitea, &settings);
//! assert_eq!(made[0].path, ".gitea/workflows/strata-plan.yml");
//! assert!(made[0].text.contains("strata review plan --base 'origin/main'"));
//! ```

mod forge;
mod template;
mod variables;
pub mod verb;

pub use forge::{Forge, PipelineFile, files};
pub use template::Settings;
pub use variables::variables;
