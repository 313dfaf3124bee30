//! What a system wrote on a disk.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The content of a disk, as its owner wrote it. Whoever keeps the disk can copy, compare and save it, and cannot read it: only the
/// type that it was written as can.
#[derive(Clone)]
pub struct Medium(Arc<Written>);

struct Written {
    saved: Value,
    /// The same, as the type that its owner asked for.
    read: OnceLock<Option<Box<dyn Any + Send + Sync>>>,
}

impl Medium {
    /// A disk with this on it. Nothing, if it cannot be saved.
    pub fn write<T: Serialize + Any + Send + Sync>(content: T) -> Option<Self> {
        let saved = serde_json::to_value(&content).ok()?;
        let content: Box<dyn Any + Send + Sync> = Box::new(content);
        Some(Self(Arc::new(Written { saved, read: OnceLock::from(Some(content)) })))
    }

    /// What is on it, if it is this.
    pub fn read<T: DeserializeOwned + Any + Send + Sync>(&self) -> Option<&T> {
        let read = self.0.read.get_or_init(|| {
            let content: T = serde_json::from_value(self.0.saved.clone()).ok()?;
            Some(Box::new(content))
        });
        read.as_ref()?.downcast_ref()
    }
}

impl PartialEq for Medium {
    fn eq(&self, other: &Self) -> bool {
        self.0.saved == other.0.saved
    }
}

impl fmt::Debug for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Medium(..)")
    }
}

impl Serialize for Medium {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.saved.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Medium {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = Value::deserialize(deserializer)?;
        Ok(Self(Arc::new(Written { saved, read: OnceLock::new() })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_also_after_it_was_saved() {
        let medium = Medium::write(vec![1_u32, 2]).unwrap();
        assert_eq!(medium.read::<Vec<u32>>(), Some(&vec![1, 2]));
        assert_eq!(medium.read::<String>(), None, "it was written as something else");
        let saved: Medium = serde_json::from_str(&serde_json::to_string(&medium).unwrap()).unwrap();
        assert_eq!(saved.read::<Vec<u32>>(), Some(&vec![1, 2]));
        assert_eq!(saved, medium);
    }
}
