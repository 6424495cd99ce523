//! TLS towards the server.

use anyhow::{Context, anyhow, bail};
use hyper_rustls::ConfigBuilderExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files in PEM.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Authorities of the server. By default those of the system.
    pub authorities: Option<PathBuf>,
    /// Certificate and key of the client.
    pub pair: Option<(PathBuf, PathBuf)>,
}

/// The same as text in PEM.
#[derive(Clone, Default)]
pub(super) struct Pem {
    pub authorities: Option<Vec<u8>>,
    pub pair: Option<(Vec<u8>, Vec<u8>)>,
}

impl Files {
    pub(super) fn read(&self) -> anyhow::Result<Pem> {
        let read = |path: &Path| fs::read(path).with_context(|| format!("reading {}", path.display()));
        let authorities = self.authorities.as_deref().map(read).transpose()?;
        let pair = match &self.pair {
            Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
            None => None,
        };
        Ok(Pem { authorities, pair })
    }
}

impl Pem {
    /// The settings for connections. Errors never repeat the text, which may be a key.
    pub(super) fn config(&self) -> anyhow::Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = match &self.authorities {
            None => builder.with_native_roots().context("reading the certificate authorities of the system")?,
            Some(text) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(text, "certificate authorities")? {
                    roots
                        .add(certificate)
                        .map_err(|error| anyhow!("the certificate authority is unusable: {error}"))?;
                }
                builder.with_root_certificates(roots)
            }
        };
        Ok(match &self.pair {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate, "a client certificate")?;
                let key = PrivateKeyDer::from_pem_slice(key)
                    .map_err(|_| anyhow!("expected the key of the client in PEM, found other content"))?;
                builder.with_client_auth_cert(chain, key).context("the certificate and the key of the client")?
            }
        })
    }
}

fn certificates(text: &[u8], what: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|_| anyhow!("expected {what} in PEM, found damaged content"))?;
    if found.is_empty() {
        bail!("expected {what} in PEM, found none");
    }
    Ok(found)
}
