//! Puts services into a process: which ones, with which clients of the others.

use crate::check;
use crate::config::Config;
use crate::credentials::ControlKeys;
use crate::wiring;
use colloquy_proto::{FILE_DESCRIPTOR_SET, METHODS};
use colloquy_service_kit::client::{channel, check_address};
use colloquy_service_kit::run::{Boot, Context};
use colloquy_service_kit::{Auth, Contract, InternalChannel, MethodRoles, Parts, ServiceKey};
use colloquy_types::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every service of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Service {
    Control,
    History,
    Router,
    Ingress,
    Memory,
    Compactor,
    /// All of them.
    All,
}

/// What the kit must be told of the contract.
pub const CONTRACT: Contract = Contract {
    descriptors: FILE_DESCRIPTOR_SET,
};

/// `all` spelled out, without doubles.
pub fn chosen(services: &[Service]) -> BTreeSet<Service> {
    use Service::{All, Compactor, Control, History, Ingress, Memory, Router};
    if services.contains(&All) {
        return BTreeSet::from([Control, History, Router, Ingress, Memory, Compactor]);
    }
    services.iter().copied().collect()
}

/// Channels to the services: in process where they are here, else to their configured address.
struct Channels<'a> {
    config: &'a Config,
    context: &'a Context,
    here: &'a BTreeSet<Service>,
    key: ServiceKey,
}

impl Channels<'_> {
    fn to(&self, service: Service, url: &str, setting: &str) -> Result<InternalChannel> {
        if self.here.contains(&service) {
            return Ok(self.key.wrap(self.context.local.clone()));
        }
        let setting = format!("services.{setting}");
        if url.is_empty() {
            let message = "is needed: the service is not part of this process";
            return Err(Error::invalid(setting, message));
        }
        check_address(&setting, url)?;
        Ok(self.key.wrap(channel(url)?))
    }

    fn control(&self) -> Result<InternalChannel> {
        self.to(Service::Control, &self.config.services.control, "control")
    }

    fn history(&self) -> Result<InternalChannel> {
        self.to(Service::History, &self.config.services.history, "history")
    }

    fn router(&self) -> Result<InternalChannel> {
        self.to(Service::Router, &self.config.services.router, "router")
    }

    fn memory(&self) -> Result<InternalChannel> {
        self.to(Service::Memory, &self.config.services.memory, "memory")
    }
}

/// Connects what the services need and builds them.
///
/// # Errors
/// `INVALID_FIELD` for a setting that is missing, `DEPENDENCY` for a store that does not come up.
pub async fn build(config: &Config, services: &[Service], context: Context) -> Result<Boot> {
    let here = chosen(services);
    let key = check::service_key(&config.auth.service_key)?;
    let channels = Channels {
        config,
        context: &context,
        here: &here,
        key,
    };
    let mut parts = Vec::new();
    stored(config, &here, &channels, &context, &mut parts).await?;
    let shutdown = &context.shutdown;
    if here.contains(&Service::Router) {
        let coord = wiring::coord(config, wiring::WAIT).await?;
        let deps = colloquy_router::Deps {
            control: channels.control()?,
            history: channels.history()?,
            coord,
        };
        parts.push(colloquy_router::parts(&config.router, deps, shutdown));
    }
    if here.contains(&Service::Ingress) {
        let deps = colloquy_ingress::Deps {
            control: channels.control()?,
            router: channels.router()?,
            history: channels.history()?,
        };
        parts.push(colloquy_ingress::parts(deps, shutdown));
    }
    let operator = Some(config.auth.operator_key.as_str()).filter(|key| !key.is_empty());
    let credentials = Arc::new(ControlKeys::new(channels.control()?));
    let auth = Auth::new(credentials, &config.auth.service_key, operator, method_roles());
    Ok(Boot { auth, parts })
}

/// The services that keep or process what is stored.
async fn stored(
    config: &Config,
    here: &BTreeSet<Service>,
    channels: &Channels<'_>,
    context: &Context,
    parts: &mut Vec<Parts>,
) -> Result<()> {
    let keeps = [Service::Control, Service::History, Service::Memory];
    let works = [Service::History, Service::Memory, Service::Compactor];
    let stores = if keeps.iter().any(|service| here.contains(service)) {
        Some(wiring::stores(config, wiring::WAIT).await?)
    } else {
        None
    };
    let bus = if works.iter().any(|service| here.contains(service)) {
        Some(wiring::bus(config, wiring::WAIT).await?)
    } else {
        None
    };
    let models =
        colloquy_llm::connect(&config.model).map_err(|error| Error::invalid("model", error.to_string()))?;
    if let Some(stores) = stores {
        if here.contains(&Service::Control) {
            parts.push(colloquy_control::parts(colloquy_control::Deps {
                store: stores.control,
            }));
        }
        if let (true, Some(bus)) = (here.contains(&Service::History), bus.clone()) {
            let deps = colloquy_history::Deps {
                store: stores.history,
                bus,
            };
            parts.push(colloquy_history::parts(&config.history, deps, &context.shutdown));
        }
        if let (true, Some(bus)) = (here.contains(&Service::Memory), bus.clone()) {
            let (history, extractor) = (channels.history()?, models.extractor);
            let deps = colloquy_memory::Deps {
                store: stores.memory,
                history,
                bus,
                extractor,
            };
            parts.push(colloquy_memory::parts(deps, &context.shutdown));
        }
    }
    if let (true, Some(bus)) = (here.contains(&Service::Compactor), bus) {
        let deps = colloquy_compactor::Deps {
            history: channels.history()?,
            memory: channels.memory()?,
            bus,
            summariser: models.summariser,
        };
        parts.push(colloquy_compactor::parts(
            &config.compactor,
            deps,
            &context.shutdown,
        ));
    }
    Ok(())
}

/// Who may call what, from the contract.
fn method_roles() -> MethodRoles {
    METHODS
        .iter()
        .map(|method| (method.path, method.roles.to_vec()))
        .collect()
}
