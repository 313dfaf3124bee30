//! The server's certificate and key, read again when the files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use strata_storage::Failure;

#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate and those that lead to its authority, PEM.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read `{path}`: {source}")]
    File { path: PathBuf, source: Failure },
    #[error("certificate and key cannot be used: {0}")]
    Unfit(#[source] rustls::Error),
}

pub(crate) struct Tls {
    files: TlsFiles,
    current: RwLock<(Arc<ServerConfig>, Stamp)>,
}

type Stamp = [Option<SystemTime>; 2];

impl Tls {
    pub(crate) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let stamp = files.stamp();
        let config = Arc::new(files.read()?);
        Ok(Self { files, current: RwLock::new((config, stamp)) })
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Reads the files again if they changed. What does not fit together (yet) changes nothing.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        let stamp = self.files.stamp();
        if self.current.read().unwrap_or_else(PoisonError::into_inner).1 == stamp {
            return Ok(false);
        }
        let config = Arc::new(self.files.read()?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = (config, stamp);
        Ok(true)
    }
}

impl TlsFiles {
    fn stamp(&self) -> Stamp {
        let changed = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified()).ok();
        [changed(&self.certificate), changed(&self.key)]
    }

    fn read(&self) -> Result<ServerConfig, TlsError> {
        let failed = |path: &Path, source: Failure| TlsError::File { path: path.to_owned(), source };
        let chain = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| failed(&self.certificate, Failure::from_error(error)))?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| failed(&self.key, Failure::from_error(error)))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
