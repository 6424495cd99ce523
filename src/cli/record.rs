//! `retrograde record`: proxies that record clients in any language.

use super::exit::Exit;
use super::record_arguments::Record;
#[cfg(feature = "proxy")]
use std::path::Path;

/// Runs a proxy until a signal ends it.
#[cfg(feature = "proxy")]
pub fn record(typed: Record) -> anyhow::Result<Exit> {
    use super::console::tell;
    use super::halting;
    use super::record_arguments::Recorded;
    use crate::proxy::Caller;

    // The first signal ends the proxy, which ends its files. A second one ends the process at once.
    halting::report_from_here();
    let stopped = || halting::halt().why().is_some();
    let caller = Caller { stopped: &stopped, tell: &|text| tell(text) };
    let summary = match typed.of {
        Recorded::Etcd(typed) => etcd(typed).run(caller)?,
        Recorded::Kube(typed) => kube(typed)?.run(caller)?,
    };
    tell(&summary.text);
    Ok(match summary.incomplete {
        None => Exit::Holds,
        Some(why) => {
            tell(format_args!("the recording is incomplete: {why}"));
            Exit::Unknown
        }
    })
}

#[cfg(feature = "proxy")]
fn etcd(typed: super::record_arguments::Etcd) -> crate::proxy::EtcdProxy {
    use crate::proxy::{EtcdProxy, Files, Listening};

    let proxy = typed.proxy;
    let listen = Listening { address: typed.listen, other_hosts: proxy.allow_other_hosts };
    let tls = Files { authorities: typed.cacert, pair: typed.cert.zip(typed.key) };
    EtcdProxy { endpoints: typed.endpoints, listen, client: proxy.client, tls, output: proxy.output }
}

#[cfg(feature = "proxy")]
fn kube(typed: super::record_arguments::Kube) -> anyhow::Result<crate::proxy::KubeProxy> {
    use crate::proxy::{KubeProxy, Listening};
    use anyhow::Context;

    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let of_home = || set("HOME").or_else(|| set("USERPROFILE")).map(|home| Path::new(&home).join(".kube/config"));
    let kubeconfig = match (typed.kubeconfig, set("KUBECONFIG")) {
        (Some(typed), _) => typed,
        (None, None) => of_home().context("expected a kubeconfig, found no home folder; name one with --kubeconfig")?,
        (None, Some(listed)) => {
            let mut files = std::env::split_paths(&listed).filter(|file| !file.as_os_str().is_empty());
            match (files.next(), files.next()) {
                (Some(only), None) => only,
                _ => {
                    anyhow::bail!("expected one file in $KUBECONFIG, found another number; name one with --kubeconfig")
                }
            }
        }
    };
    let proxy = typed.proxy;
    Ok(KubeProxy {
        kubeconfig,
        context: typed.context,
        listen: Listening { address: typed.listen, other_hosts: proxy.allow_other_hosts },
        client: proxy.client,
        user: typed.user,
        clock: typed.clock,
        fields: crate::read_options_for(&*crate::rules_files(&typed.rules)?).fields,
        output: proxy.output,
    })
}

/// Says how to get a program with the proxies.
#[cfg(not(feature = "proxy"))]
pub fn record(_: Record) -> anyhow::Result<Exit> {
    anyhow::bail!(
        "this program was built without `record`, so that it has no network; build one with it: \
         cargo install --path . --features proxy (releases have it)"
    )
}
