//! Deleting what is empty, and only that: no children, no snapshots, no shares, no files.

use serde_json::{Value, json};
use strata_net::WritePermit;

use crate::{Dataset, DatasetName, Trouble, TrueNasClient, TrueNasError};

/// An empty file system takes some space for itself, more on wide RAID-Z; what takes more than this is not empty.
pub const EMPTY_SIZE: u64 = 1 << 20;

/// What became of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    AlreadyGone,
    Deleted,
}

impl TrueNasClient {
    /// What keeps a dataset from being deleted, in words; nothing if it is empty. Reads only.
    pub async fn contents(
        &self,
        dataset: &Dataset,
        name: &DatasetName,
    ) -> Result<Option<String>, TrueNasError> {
        if dataset.volume {
            return Ok(Some("it is a block device, into which nobody can look".to_owned()));
        }
        if dataset.locked {
            return Ok(Some("it is locked, and nobody can look into it".to_owned()));
        }
        let children = self.children(name).await?;
        if let [first, ..] = children.as_slice() {
            return Ok(Some(format!("it has {} dataset(s) below it, such as `{first}`", children.len())));
        }
        let snapshots = self.snapshot_count(name).await?;
        if snapshots > 0 {
            return Ok(Some(format!("it has {snapshots} snapshot(s)")));
        }
        if let Some(user) = self.attachment(name).await? {
            return Ok(Some(format!("it is in use by {user}")));
        }
        match dataset.used_by_itself.or(dataset.used) {
            Some(used) if used < EMPTY_SIZE => {}
            Some(used) => return Ok(Some(format!("it holds {used} bytes"))),
            None => return Ok(Some("the server does not say how much it holds".to_owned())),
        }
        self.first_file(dataset, name).await
    }

    /// Deletes a dataset if it is there and empty. Looks, then makes one write.
    pub async fn delete_empty_dataset(
        &self,
        permit: &WritePermit<'_>,
        name: &DatasetName,
    ) -> Result<Deletion, TrueNasError> {
        let action = format!("delete dataset `{name}`");
        let Some(dataset) = self.dataset(name).await? else { return Ok(Deletion::AlreadyGone) };
        if let Some(contents) = self.contents(&dataset, name).await? {
            return Err(TrueNasError::new(Trouble::NotEmpty, action, self.endpoint(), contents)
                .with_hint("what is not empty is never deleted: move or remove what is in it, or take it out of the stack and keep it"));
        }
        let params = json!([name.as_str(), {"recursive": false, "force": false}]);
        match self.write(permit, &action, "pool.dataset.delete", params).await {
            Ok(_) => Ok(Deletion::Deleted),
            Err(error) if error.trouble() == Trouble::NotFound => Ok(Deletion::AlreadyGone),
            Err(error) => Err(error),
        }
    }

    async fn snapshot_count(&self, name: &DatasetName) -> Result<u64, TrueNasError> {
        let action = format!("count the snapshots of dataset `{name}`");
        let params = json!([[["dataset", "=", name.as_str()]], {"count": true}]);
        // The call has had two names.
        for method in ["pool.snapshot.query", "zfs.snapshot.query"] {
            if let Some(answer) = self.read_if_known(&action, method, params.clone()).await? {
                let count = answer.as_u64().or_else(|| answer.as_array().map(|list| list.len() as u64));
                return count.ok_or_else(|| self.unreadable(&action));
            }
        }
        Err(self.unreadable(&action))
    }

    /// A share or service that uses it. The server would take that away together with the dataset.
    async fn attachment(&self, name: &DatasetName) -> Result<Option<String>, TrueNasError> {
        let action = format!("look who uses dataset `{name}`");
        let found = self.read(&action, "pool.dataset.attachments", json!([name.as_str()])).await?;
        let found = found.as_array().ok_or_else(|| self.unreadable(&action))?;
        Ok(found.first().map(|one| {
            let kind = one.get("type").and_then(Value::as_str).unwrap_or("a service");
            format!("`{kind}`")
        }))
    }

    /// A small file changes the size of a file system by nothing: only its listing tells.
    async fn first_file(
        &self,
        dataset: &Dataset,
        name: &DatasetName,
    ) -> Result<Option<String>, TrueNasError> {
        let action = format!("look into dataset `{name}`");
        let Some(mountpoint) = dataset.mountpoint.as_deref().filter(|path| path.starts_with('/')) else {
            return Ok(Some("it is not mounted, and nobody can look into it".to_owned()));
        };
        let params = json!([mountpoint, [], {"limit": 1}]);
        let found = match self.read(&action, "filesystem.listdir", params).await {
            Ok(found) => found,
            Err(error) if error.trouble() == Trouble::NotFound => {
                return Ok(Some("it is not mounted, and nobody can look into it".to_owned()));
            }
            Err(error) => return Err(error),
        };
        let found = found.as_array().ok_or_else(|| self.unreadable(&action))?;
        let file =
            |entry: &Value| entry.get("name").and_then(Value::as_str).unwrap_or("something").to_owned();
        Ok(found.first().map(|entry| format!("it holds `{}`", file(entry))))
    }
}
