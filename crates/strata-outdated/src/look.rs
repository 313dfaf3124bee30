//! What each pin can become.

mod images;
mod registry;
mod releases;
mod sources;
mod talos;

use futures::stream::{self, StreamExt as _};

use crate::fetch::Fetch;
use crate::pin::{At, Edit, Pin, What};
use sources::Sources;
pub use sources::Unanswered;

/// How many pins are looked at at the same time.
const AT_ONCE: usize = 8;

/// A version that a pin can become.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// As the source would say it.
    pub version: String,
    /// The values that change; why nobody but a person can change them, where that is so.
    pub edits: Result<Vec<Edit>, String>,
}

/// What is known of a pin.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was looked at.
    pub pin: Pin,
    /// Within the same major version or series.
    pub next: Option<Proposal>,
    /// The next major version or series.
    pub major: Option<Proposal>,
    /// What a reader should know: versions that are there and do not fit, extensions.
    pub notes: Vec<String>,
    /// Why nothing is known of it.
    pub unknown: Option<String>,
}

/// Everything that was looked at.
#[derive(Debug, Default)]
pub struct Looked {
    /// One for each pin.
    pub findings: Vec<Finding>,
    /// Places that did not answer, or not with what they should have.
    pub unanswered: Vec<Unanswered>,
}

/// What is there for these pins. Findings come in the order of the pins.
pub async fn look(pins: Vec<Pin>, fetch: &dyn Fetch) -> Looked {
    let sources = Sources::new(fetch);
    let sources = &sources;
    let each = pins.into_iter().map(|pin| async move { one(pin, sources).await });
    let findings = stream::iter(each).buffered(AT_ONCE).collect().await;
    Looked { findings, unanswered: sources.unanswered() }
}

/// What comes of a look at one pin.
#[derive(Default)]
struct Seen {
    next: Option<Proposal>,
    major: Option<Proposal>,
    notes: Vec<String>,
}

/// Why nothing came of it.
struct Unknown(String);

async fn one(pin: Pin, sources: &Sources<'_>) -> Finding {
    let seen = match &pin.what {
        What::Talos { kubernetes, extensions } => talos::talos(&pin, kubernetes, extensions, sources).await,
        What::Kubernetes { talos } => talos::kubernetes(&pin, talos, sources).await,
        What::Flux { checksum, elsewhere } => {
            releases::flux(&pin, checksum.as_ref(), *elsewhere, sources).await
        }
        What::Image { checksum, checksum_at } => {
            images::image(&pin, checksum.as_ref(), checksum_at.as_ref(), sources).await
        }
        What::Provider | What::Module => registry::registry(&pin, sources).await,
    };
    match seen {
        Ok(Seen { next, major, notes }) => Finding { pin, next, major, notes, unknown: None },
        Err(Unknown(why)) => Finding { pin, next: None, major: None, notes: Vec::new(), unknown: Some(why) },
    }
}

/// The pin with another version, and nothing beside it.
fn plain(pin: &Pin, version: String) -> Proposal {
    let edits = value_edit(pin, version.clone()).map(|edit| vec![edit]);
    Proposal { version, edits }
}

fn value_edit(pin: &Pin, after: String) -> Result<Edit, String> {
    let at = pin.at.clone()?;
    Ok(Edit { file: pin.place.file.clone(), at, before: pin.current.clone(), after })
}

fn edit_at(pin: &Pin, at: &At, before: String, after: String) -> Edit {
    Edit { file: pin.place.file.clone(), at: at.clone(), before, after }
}
