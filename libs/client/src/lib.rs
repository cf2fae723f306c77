//! A typed client with retries, and the worker loop that agents are written with.
//!
//! Owns what a caller of the product should not have to write: credentials on each call, retries that end, the
//! acquire–renew–commit cycle. Must not know servers or stores.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use colloquy_client::{Answer, Client, Worker};
//!
//! let client = Client::connect("http://127.0.0.1:7100", "clq_…")?;
//! let worker = Worker::new(client, "echo").agents(["default"]);
//! worker.run(|turn| async move { Ok(Answer::text(format!("You said: {}", turn.text()))) }).await?;
//! # Ok(())
//! # }
//! ```

mod context;
mod error;
mod retry;
mod turn;
mod worker;

pub use colloquy_proto::v1;
pub use context::BuiltContext;
pub use error::{Error, Result};
pub use retry::Retry;
pub use turn::{BuildOptions, TurnHandle};
pub use worker::{Answer, Failure, Worker};

use colloquy_proto::v1::compaction_service_client::CompactionServiceClient;
use colloquy_proto::v1::control_service_client::ControlServiceClient;
use colloquy_proto::v1::history_service_client::HistoryServiceClient;
use colloquy_proto::v1::ingress_service_client::IngressServiceClient;
use colloquy_proto::v1::memory_service_client::MemoryServiceClient;
use colloquy_proto::v1::router_service_client::RouterServiceClient;
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// Largest message in either direction, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A channel on which each call carries the key.
pub type AuthedChannel = InterceptedService<Channel, Bearer>;

/// Puts the key on each request.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> std::result::Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// Where each service is. One address when a single process serves them all.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    pub control: String,
    pub history: String,
    pub ingress: String,
    pub router: String,
    pub memory: String,
    pub compactor: String,
}

impl Addresses {
    pub fn single(url: &str) -> Self {
        let url = || url.to_owned();
        Self {
            control: url(),
            history: url(),
            ingress: url(),
            router: url(),
            memory: url(),
            compactor: url(),
        }
    }
}

/// Clients of all services under one key. Cheap to clone; connects on first use and again when needed.
#[derive(Clone)]
pub struct Client {
    control: Channel,
    history: Channel,
    ingress: Channel,
    router: Channel,
    memory: Channel,
    compactor: Channel,
    bearer: Bearer,
    /// How calls made through the client's own methods are retried.
    pub retry: Retry,
}

macro_rules! services {
    ($($(#[$doc:meta])* $name:ident: $client:ident),+ $(,)?) => {
        impl Client {
            $($(#[$doc])*
            pub fn $name(&self) -> $client<AuthedChannel> {
                $client::new(InterceptedService::new(self.$name.clone(), self.bearer.clone()))
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES)
            })+
        }
    };
}

services! {
    /// Tenants, keys, agents, channel accounts.
    control: ControlServiceClient,
    /// Sessions, entries, contexts.
    history: HistoryServiceClient,
    /// Messages in, replies out.
    ingress: IngressServiceClient,
    /// Turns.
    router: RouterServiceClient,
    /// Memories.
    memory: MemoryServiceClient,
    /// Compaction and jobs.
    compactor: CompactionServiceClient,
}

impl Client {
    /// A client of a process that serves everything at one URL.
    ///
    /// # Errors
    /// When the URL or the key cannot be used; nothing is connected yet.
    pub fn connect(url: &str, key: &str) -> Result<Self> {
        Self::connect_each(&Addresses::single(url), key)
    }

    /// A client of services at addresses of their own.
    ///
    /// # Errors
    /// When a URL or the key cannot be used; nothing is connected yet.
    pub fn connect_each(addresses: &Addresses, key: &str) -> Result<Self> {
        let open = |url: &str| -> Result<Channel> {
            let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| Error::url(url, &error))?;
            let endpoint = endpoint
                .connect_timeout(Duration::from_secs(3))
                .tcp_nodelay(true)
                .http2_keep_alive_interval(Duration::from_secs(20))
                .keep_alive_while_idle(true);
            Ok(endpoint.connect_lazy())
        };
        Ok(Self {
            control: open(&addresses.control)?,
            history: open(&addresses.history)?,
            ingress: open(&addresses.ingress)?,
            router: open(&addresses.router)?,
            memory: open(&addresses.memory)?,
            compactor: open(&addresses.compactor)?,
            bearer: bearer(key)?,
            retry: Retry::default(),
        })
    }

    /// A client over a channel that is there already, for instance an in-process one.
    ///
    /// # Errors
    /// When the key cannot stand in a header.
    pub fn over(channel: &Channel, key: &str) -> Result<Self> {
        let open = || channel.clone();
        Ok(Self {
            control: open(),
            history: open(),
            ingress: open(),
            router: open(),
            memory: open(),
            compactor: open(),
            bearer: bearer(key)?,
            retry: Retry::default(),
        })
    }

    /// The same connections under another key.
    ///
    /// # Errors
    /// When the key cannot stand in a header.
    pub fn with_key(&self, key: &str) -> Result<Self> {
        Ok(Self {
            bearer: bearer(key)?,
            ..self.clone()
        })
    }
}

fn bearer(key: &str) -> Result<Bearer> {
    format!("Bearer {key}")
        .parse()
        .map(Bearer)
        .map_err(|_| Error::key())
}
