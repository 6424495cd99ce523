//! Clients of kube-rs that `KubeLayer` records.

use crate::Result;
use crate::servers::PATIENCE;
use futures_util::io::{AsyncBufRead, AsyncBufReadExt, Lines};
use futures_util::stream::StreamExt;
use http::{Method, Request};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use retrograde::assertion::Capture;
use retrograde::record::KubeLayer;
use secrecy::SecretString;
use serde_json::Value;
use std::pin::Pin;

/// One client process; its requests are recorded if it has a capture.
#[derive(Clone)]
pub struct Process {
    pub client: Client,
}

/// The answer to one request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    /// The body of a successful answer.
    pub fn ok(self) -> Result<Value> {
        if self.status < 300 { Ok(self.body) } else { Err(format!("{}: {}", self.status, self.body).into()) }
    }

    /// Fails unless the answer has this status.
    pub fn refused(self, status: u16) -> Result<()> {
        if self.status == status {
            Ok(())
        } else {
            Err(format!("expected {status}, found {}: {}", self.status, self.body).into())
        }
    }
}

impl Process {
    pub fn new(url: &str, token: String, agent: &str, capture: Option<Capture>) -> Result<Process> {
        let mut config = Config::new(url.parse()?);
        // The servers sign their certificates themselves.
        config.accept_invalid_certs = true;
        config.auth_info.token = Some(SecretString::from(token));
        config.headers = vec![(http::header::USER_AGENT, agent.parse()?)];
        // A retry would be a request that the scenario does not name.
        config.default_retry = false;
        let builder = ClientBuilder::try_from(config)?;
        let client = match capture {
            Some(capture) => builder.with_layer(&KubeLayer::new(capture, Body::try_clone)).build(),
            None => builder.build(),
        };
        Ok(Process { client })
    }

    /// Sends a request. `content` is its content type.
    pub async fn send(&self, method: Method, uri: &str, content: &str, body: Option<&Value>) -> Result<Answer> {
        let bytes = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = Request::builder().method(method).uri(uri).header("content-type", content);
        let answer = self.client.send(request.header("accept", "application/json").body(Body::from(bytes))?).await?;
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect_bytes().await?;
        Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }

    pub async fn get(&self, uri: &str) -> Result<Answer> {
        self.send(Method::GET, uri, "application/json", None).await
    }

    pub async fn post(&self, uri: &str, body: &Value) -> Result<Answer> {
        self.send(Method::POST, uri, "application/json", Some(body)).await
    }

    pub async fn put(&self, uri: &str, body: &Value) -> Result<Answer> {
        self.send(Method::PUT, uri, "application/json", Some(body)).await
    }

    pub async fn delete(&self, uri: &str, options: &Value) -> Result<Answer> {
        self.send(Method::DELETE, uri, "application/json", Some(options)).await
    }

    /// Sends a patch of type `merge`, `json`, `strategic-merge` or `apply`.
    pub async fn patch(&self, uri: &str, kind: &str, body: &Value) -> Result<Answer> {
        let content = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            _ => format!("application/{}-patch+json", kind),
        };
        self.send(Method::PATCH, uri, &content, Some(body)).await
    }

    /// Begins a watch.
    pub async fn watch(&self, uri: &str) -> Result<Watch> {
        let stream = self.client.request_stream(Request::get(uri).body(Vec::new())?).await?;
        let stream: Pin<Box<dyn AsyncBufRead + Send>> = Box::pin(stream);
        Ok(Watch { lines: stream.lines() })
    }
}

/// A watch; dropping it ends the stream.
pub struct Watch {
    lines: Lines<Pin<Box<dyn AsyncBufRead + Send>>>,
}

impl Watch {
    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next());
        match line.await.map_err(|_| "expected an event, found none in time")? {
            Some(line) => Ok(Some(serde_json::from_str(&line?)?)),
            None => Ok(None),
        }
    }

    /// Waits for an event of a type about a name, and skips others.
    pub async fn expect(&mut self, kind: &str, name: &str) -> Result<Value> {
        while let Some(event) = self.next().await? {
            if event["type"] == "ERROR" {
                return Err(format!("the watch ended: {event}").into());
            }
            if event["type"] == kind && event["object"]["metadata"]["name"] == name {
                return Ok(event["object"].clone());
            }
        }
        Err(format!("expected {kind} of {name}, found the end of the watch").into())
    }

    /// Whether the stream begins with an error or ends at once.
    pub async fn is_refused(&mut self) -> Result<bool> {
        Ok(self.next().await?.is_none_or(|event| event["type"] == "ERROR"))
    }
}

/// The resourceVersion of an object, a list, or an answer.
pub fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// The uid of an object.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
