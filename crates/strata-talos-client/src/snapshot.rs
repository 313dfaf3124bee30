//! Snapshots of etcd: out of a node, and into one that is to begin with them.

use bytes::Bytes;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};
use strata_net::WritePermit;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::client::TalosClient;
use crate::error::{TalosError, TalosReason};
use crate::message::frame;
use crate::wire::machine::Begun;
use crate::wire::{Data, Empty};

const CHUNK: usize = 64 << 10;
const CHECKSUM: usize = 32;

/// A snapshot that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    pub bytes: u64,
    /// Whether it ends with the SHA-256 of itself, as etcd writes it. One that was cut short does not.
    pub intact: bool,
}

impl TalosClient {
    /// Writes a snapshot of this node's etcd. A node does not say when its etcd fails in the middle: look at
    /// [`Snapshot::intact`].
    pub async fn etcd_snapshot(
        &self,
        into: &mut (dyn AsyncWrite + Unpin + Send),
    ) -> Result<Snapshot, TalosError> {
        let path = "/machine.MachineService/EtcdSnapshot";
        let failed = |error: std::io::Error| self.error(path, TalosReason::Local(error.to_string()));
        let mut stream = self.stream::<Data>(path, &Empty {}, self.timeouts.transfer).await?;
        let mut check = Check::default();
        while let Some(data) = stream.next().await? {
            check.take(&data.bytes);
            into.write_all(&data.bytes).await.map_err(failed)?;
        }
        into.flush().await.map_err(failed)?;
        Ok(Snapshot { bytes: check.bytes, intact: check.finish() })
    }

    /// Uploads a snapshot, from which [`TalosClient::bootstrap_recovered`] then makes a cluster. Replaces one that was
    /// uploaded before.
    pub async fn etcd_recover(
        &self,
        permit: &WritePermit<'_>,
        from: impl AsyncRead + Send + Unpin + 'static,
    ) -> Result<(), TalosError> {
        let path = "/machine.MachineService/EtcdRecover";
        let chunks = futures::stream::try_unfold(from, async |mut from| {
            let mut chunk = vec![0; CHUNK];
            let length = from.read(&mut chunk).await?;
            chunk.truncate(length);
            let message = frame(&Data { bytes: Bytes::from(chunk) });
            Ok((length > 0).then_some((message, from)))
        });
        let _: crate::wire::Answers<Begun> =
            self.upload(permit, path, chunks.boxed(), self.timeouts.transfer).await?;
        Ok(())
    }
}

/// Whether a snapshot is whole: it ends with the SHA-256 of itself, as etcd writes it.
pub fn is_intact(snapshot: &[u8]) -> bool {
    let mut check = Check::default();
    snapshot.chunks(CHUNK).for_each(|chunk| check.take(chunk));
    check.finish()
}

/// Hashes everything but the last bytes, which are the hash.
#[derive(Default)]
struct Check {
    hash: Sha256,
    last: Vec<u8>,
    bytes: u64,
}

impl Check {
    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.last.extend_from_slice(bytes);
        let known = self.last.len().saturating_sub(CHECKSUM);
        self.hash.update(&self.last[..known]);
        self.last.drain(..known);
    }

    fn finish(self) -> bool {
        self.bytes > CHECKSUM as u64 && self.hash.finalize().as_slice() == self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_whole_snapshot_from_a_part_of_one() {
        let data: Vec<u8> = (0..1000u32).map(|byte| byte as u8).collect();
        let whole = [data.clone(), Sha256::digest(&data).to_vec()].concat();
        let intact = |bytes: &[u8], step: usize| {
            let mut check = Check::default();
            bytes.chunks(step).for_each(|chunk| check.take(chunk));
            (check.bytes == bytes.len() as u64) && check.finish()
        };
        for step in [1, 31, 32, 33, 500, 5000] {
            assert!(intact(&whole, step), "{step}");
            assert!(!intact(&whole[..whole.len() - 1], step), "{step}");
        }
        assert!(!intact(&[], 1) && !intact(&data, 100));
    }
}
