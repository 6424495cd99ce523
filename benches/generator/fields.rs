//! Parts of objects that the checker does not read, and that make up most of a log.

/// Size of the bodies in a log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    /// Spec, status, managedFields, the escaped last-applied object: 7 KB an event on average.
    Full,
    /// Identity and little more: 1.3 KB an event on average.
    Small,
}

/// Parts that every object of a kind has, each with its leading comma.
#[derive(Default)]
pub struct Fields {
    /// Annotations and managedFields of a pod.
    pub metadata: String,
    /// Spec of a pod.
    pub spec: String,
    /// Status of a pod.
    pub status: String,
    /// managedFields of a lease or configmap.
    pub managed: String,
    /// The value of a configmap.
    pub data: String,
}

impl Fields {
    /// The parts for bodies of this size.
    pub fn new(bodies: Bodies) -> Fields {
        if bodies == Bodies::Small {
            return Fields::default();
        }
        let containers: Vec<String> = (0..2).map(container).collect();
        let spec = format!(
            r#","volumes":[{{"name":"token","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}],"defaultMode":420}}}}],"containers":[{}],"restartPolicy":"Always","dnsPolicy":"ClusterFirst","serviceAccountName":"web","schedulerName":"default-scheduler""#,
            containers.join(",")
        );
        let conditions: Vec<String> =
            ["PodScheduled", "Initialized", "ContainersReady", "Ready"].into_iter().map(condition).collect();
        let applied = format!(r#"{{"spec":{{"replicas":1{spec}}}}}"#).replace('"', "\\\"");
        Fields {
            metadata: format!(
                r#","annotations":{{"kubectl.kubernetes.io/last-applied-configuration":"{applied}\n"}}{}"#,
                managed(44)
            ),
            spec,
            status: format!(r#","conditions":[{}],"podIP":"10.2.7.9","qosClass":"Burstable""#, conditions.join(",")),
            managed: managed(6),
            data: r"key: \u003cvalue\u003e\n".repeat(60),
        }
    }
}

fn container(n: usize) -> String {
    format!(
        r#"{{"name":"web-{n}","image":"registry.example.com/web/server:v1.4.{n}","args":["--listen=:808{n}","--log-level=info"],"ports":[{{"containerPort":808{n},"protocol":"TCP"}}],"env":[{{"name":"POD_IP","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"status.podIP"}}}}}}],"resources":{{"limits":{{"cpu":"500m","memory":"256Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}}"#
    )
}

fn condition(kind: &str) -> String {
    format!(r#"{{"type":"{kind}","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-02-04T08:00:11Z"}}"#)
}

fn managed(fields: usize) -> String {
    let owned: Vec<String> = (0..fields).map(|n| format!(r#""f:field-{n}":{{".":{{}},"f:value":{{}}}}"#)).collect();
    format!(
        r#","managedFields":[{{"manager":"deployer","operation":"Update","apiVersion":"v1","time":"2026-02-04T08:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:labels":{{".":{{}},"f:app":{{}}}}}},"f:spec":{{{}}}}}}}]"#,
        owned.join(",")
    )
}
