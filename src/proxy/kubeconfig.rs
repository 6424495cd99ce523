//! Kubeconfig files: the server, its certificate authorities, and the credentials of one context.
//!
//! Source: `staging/src/k8s.io/client-go/tools/clientcmd/api/v1/types.go` of kubernetes/kubernetes.

use super::tls::Pem;
use anyhow::{Context as _, anyhow, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Uri;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// How to reach a server, and as whom.
pub(super) struct Access {
    /// Scheme, host, and the path before those of the API.
    pub server: Uri,
    /// The name in the server's certificate, if it is not the host.
    pub server_name: Option<ServerName<'static>>,
    pub pem: Pem,
    pub credentials: Credentials,
    /// Headers that impersonate a user.
    pub impersonated: Vec<(&'static str, String)>,
}

/// Credentials in a header.
pub(super) enum Credentials {
    None,
    /// The value of the header.
    Header(String),
    /// A file with a token, which somebody may replace at any time.
    TokenFile(PathBuf),
}

impl Credentials {
    /// The value of the header `Authorization`.
    pub(super) fn header(&self) -> std::io::Result<Option<String>> {
        match self {
            Credentials::None => Ok(None),
            Credentials::Header(value) => Ok(Some(value.clone())),
            Credentials::TokenFile(path) => Ok(Some(format!("Bearer {}", fs::read_to_string(path)?.trim()))),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Document {
    current_context: Option<String>,
    contexts: Option<Vec<NamedContext>>,
    clusters: Option<Vec<NamedCluster>>,
    users: Option<Vec<NamedUser>>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    tls_server_name: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: Option<User>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<String>,
    #[serde(rename = "as")]
    impersonated: Option<String>,
    as_uid: Option<String>,
    as_groups: Option<Vec<String>>,
    as_user_extra: Option<yaml_serde::Value>,
    exec: Option<Exec>,
    auth_provider: Option<Provider>,
}

#[derive(Deserialize)]
struct Exec {
    #[serde(default)]
    command: String,
}

#[derive(Deserialize)]
struct Provider {
    #[serde(default)]
    name: String,
}

/// Reads one context of a file; by default its current one. Errors never repeat the file, which has secrets.
pub(super) fn read(path: &Path, context: Option<&str>) -> anyhow::Result<Access> {
    let text = fs::read_to_string(path).with_context(|| format!("reading the kubeconfig {}", path.display()))?;
    access(&text, path.parent().unwrap_or(Path::new("")), context)
        .with_context(|| format!("the kubeconfig {}", path.display()))
}

fn access(text: &str, folder: &Path, context: Option<&str>) -> anyhow::Result<Access> {
    let document: Document = yaml_serde::from_str(text).map_err(|error| {
        let place = error.location().map_or_else(String::new, |at| format!(" at line {}", at.line()));
        anyhow!("expected a kubeconfig in YAML or JSON, found another structure{place}")
    })?;
    let name = context.or(document.current_context.as_deref()).filter(|name| !name.is_empty());
    let Some(name) = name else { bail!("it has no current-context; name one with --context") };
    let contexts = document.contexts.unwrap_or_default();
    let Some(NamedContext { context, .. }) = contexts.iter().find(|context| context.name == name) else {
        let names: Vec<&str> = contexts.iter().map(|context| context.name.as_str()).collect();
        bail!("it has no context {name}, but {names:?}");
    };
    let clusters = document.clusters.unwrap_or_default();
    let cluster = clusters.into_iter().find(|cluster| cluster.name == context.cluster);
    let cluster =
        cluster.ok_or_else(|| anyhow!("it has no cluster {}, which context {name} names", context.cluster))?;
    let user = match context.user.as_deref().filter(|user| !user.is_empty()) {
        None => User::default(),
        Some(user) => {
            let found = document.users.unwrap_or_default().into_iter().find(|known| known.name == user);
            found.ok_or_else(|| anyhow!("it has no user {user}, whom context {name} names"))?.user.unwrap_or_default()
        }
    };
    user.refuse_programs()?;
    cluster.cluster.access(user, folder)
}

impl User {
    /// Refuses credentials that another program makes: this one starts none.
    fn refuse_programs(&self) -> anyhow::Result<()> {
        let instead = "use a user with a token or a certificate (kubectl create token), or run `kubectl proxy --port 8002` \
                       and name a kubeconfig with `server: http://127.0.0.1:8002`";
        if let Some(exec) = &self.exec {
            bail!(
                "its user gets credentials from the program {:?} (exec), which retrograde does not start; {instead}",
                exec.command
            );
        }
        if let Some(provider) = &self.auth_provider {
            bail!(
                "its user gets credentials from the auth-provider {:?}, which retrograde does not have; {instead}",
                provider.name
            );
        }
        if self.as_user_extra.is_some() {
            bail!("its user impersonates with as-user-extra, which retrograde does not support; {instead}");
        }
        Ok(())
    }
}

impl Cluster {
    fn access(self, user: User, folder: &Path) -> anyhow::Result<Access> {
        if self.insecure_skip_tls_verify {
            bail!(
                "its cluster has insecure-skip-tls-verify, which retrograde refuses, since it would give credentials to any server; \
                 add its certificate-authority"
            );
        }
        if self.proxy_url.is_some_and(|url| !url.is_empty()) {
            bail!("its cluster has a proxy-url, which retrograde does not support; name a server that it can reach");
        }
        let expected = || format!("expected a server such as https://10.0.0.1:6443, found {}", self.server);
        let server: Uri = self.server.parse().with_context(expected)?;
        if !matches!(server.scheme_str(), Some("http" | "https")) || server.query().is_some() {
            bail!(expected());
        }
        let server_name = self.tls_server_name.filter(|name| !name.is_empty()).map(|name| {
            ServerName::try_from(name).map_err(|_| anyhow!("expected a host as tls-server-name, found another text"))
        });
        let part = |data: Option<String>, file: Option<PathBuf>, name: &str| content(data, file, folder, name);
        let authorities = part(self.certificate_authority_data, self.certificate_authority, "certificate-authority")?;
        let certificate = part(user.client_certificate_data, user.client_certificate, "client-certificate")?;
        let key = part(user.client_key_data, user.client_key, "client-key")?;
        let pair = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => bail!("its user has one of client-certificate and client-key, and not the other"),
        };
        let set = |text: Option<String>| text.filter(|text| !text.is_empty());
        // The order of client-go: a file prevails over a token.
        let credentials = match (user.token_file, set(user.token), set(user.username)) {
            (Some(file), ..) if !file.as_os_str().is_empty() => Credentials::TokenFile(folder.join(file)),
            (_, Some(token), _) => Credentials::Header(format!("Bearer {token}")),
            (_, None, Some(name)) => {
                let pair = format!("{name}:{}", user.password.unwrap_or_default());
                Credentials::Header(format!("Basic {}", BASE64_STANDARD.encode(pair)))
            }
            _ => Credentials::None,
        };
        let mut impersonated = Vec::new();
        if let Some(name) = set(user.impersonated) {
            impersonated.push(("impersonate-user", name));
            impersonated.extend(set(user.as_uid).map(|uid| ("impersonate-uid", uid)));
            impersonated
                .extend(user.as_groups.unwrap_or_default().into_iter().map(|group| ("impersonate-group", group)));
        }
        let server_name = server_name.transpose()?;
        Ok(Access { server, server_name, pem: Pem { authorities, pair }, credentials, impersonated })
    }
}

/// Data in base64 prevail over a file, as in client-go.
fn content(data: Option<String>, file: Option<PathBuf>, folder: &Path, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let data: String = data.split_ascii_whitespace().collect();
        return Ok(Some(
            BASE64_STANDARD.decode(data).map_err(|_| anyhow!("expected {name}-data in base64, found another text"))?,
        ));
    }
    let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) else { return Ok(None) };
    let path = folder.join(file);
    fs::read(&path).map(Some).with_context(|| format!("reading its {name} {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: dev\ncontexts:\n- name: dev\n  context: {{cluster: c, user: u, namespace: n}}\n\
             clusters:\n- name: c\n  cluster: {{server: 'https://10.0.0.1:6443/base', {cluster}}}\nusers:\n- name: u\n  user: {{{user}}}\n"
        )
    }

    fn said(cluster: &str, user: &str) -> String {
        match access(&config(cluster, user), Path::new("/etc"), None) {
            Ok(_) => panic!("it is accepted"),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn a_context_gives_the_server_and_the_credentials() {
        let (one, two) = (BASE64_STANDARD.encode("one"), BASE64_STANDARD.encode("two"));
        let user =
            format!("client-certificate-data: {one}, client-key-data: {two}, token: t, as: ann, as-groups: [a, b]");
        let read = access(
            &config(&format!("certificate-authority-data: {two}, tls-server-name: kube"), &user),
            Path::new(""),
            None,
        )
        .unwrap();
        assert_eq!((read.server.host(), read.server.path()), (Some("10.0.0.1"), "/base"));
        assert_eq!(read.server_name, Some(ServerName::try_from("kube").unwrap()));
        assert_eq!(read.pem.authorities.as_deref(), Some(b"two".as_slice()));
        assert_eq!(read.pem.pair, Some((b"one".to_vec(), b"two".to_vec())));
        assert_eq!(read.credentials.header().unwrap().as_deref(), Some("Bearer t"));
        let impersonated: Vec<&str> = read.impersonated.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(impersonated, ["ann", "a", "b"]);
        let read = access(&config("", "username: ann, password: p"), Path::new(""), Some("dev")).unwrap();
        assert_eq!(read.credentials.header().unwrap().as_deref(), Some("Basic YW5uOnA="));
        let read = access(&config("", "tokenFile: hostname, token: t"), Path::new("/etc"), None).unwrap();
        let Credentials::TokenFile(path) = read.credentials else { panic!("it is no file") };
        assert_eq!(path, Path::new("/etc/hostname"));
    }

    #[test]
    fn what_is_not_supported_is_named_with_what_to_do() {
        let exec = said("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks]}");
        assert!(exec.contains("\"aws\"") && exec.contains("kubectl create token"), "{exec}");
        assert!(said("", "auth-provider: {name: gcp}").contains("\"gcp\""));
        assert!(said("insecure-skip-tls-verify: true", "token: t").contains("certificate-authority"));
        assert!(said("proxy-url: 'http://p'", "token: t").contains("proxy-url"));
        assert!(said("", "as: a, as-user-extra: {k: [v]}").contains("as-user-extra"));
        assert!(said("", "client-certificate-data: eA==").contains("client-key"));
        assert!(said("certificate-authority: no-such-file", "token: t").contains("/etc/no-such-file"));
    }

    #[test]
    fn errors_never_repeat_the_file() {
        for text in ["users: [hidden", "users: hidden", "- hidden", "current-context: {hidden: hidden}"] {
            let Err(error) = access(text, Path::new(""), Some("dev")) else { panic!("{text} is accepted") };
            assert!(!format!("{error:#}").contains("hidden"), "{error:#}");
        }
        assert!(!said("certificate-authority-data: '*hidden*'", "token: t").contains("hidden"));
        let error = access(&config("", "token: t"), Path::new(""), Some("other")).err().unwrap().to_string();
        assert!(error.contains("no context other") && error.contains("dev"), "{error}");
    }
}
