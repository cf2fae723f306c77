//! Effective policies by content: immutable, so a cached one is never stale.

use colloquy_storage::{HistoryStore, PolicyId};
use colloquy_types::{Error, Policy, Result, TenantId};
use moka::future::Cache;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A policy and the JSON that it was made from.
#[derive(Debug)]
pub struct Known {
    pub policy: Policy,
    pub json: String,
}

#[derive(Clone)]
pub struct Policies {
    store: Arc<dyn HistoryStore>,
    known: Cache<PolicyId, Arc<Known>>,
}

impl Policies {
    pub fn new(store: Arc<dyn HistoryStore>) -> Self {
        Self {
            store,
            known: Cache::new(10_000),
        }
    }

    /// The policy of a request, parsed once per content.
    pub async fn of_json(&self, json: &str) -> Result<(PolicyId, Arc<Known>)> {
        let id = PolicyId(hex::encode(&Sha256::digest(json.as_bytes())[..16]));
        if let Some(known) = self.known.get(&id).await {
            return Ok((id, known));
        }
        let known = Arc::new(Known {
            policy: Policy::from_json(json)?,
            json: json.to_owned(),
        });
        self.known.insert(id.clone(), known.clone()).await;
        Ok((id, known))
    }

    /// The policy stored under an id.
    pub async fn get(&self, tenant: TenantId, id: &PolicyId) -> Result<Arc<Known>> {
        if let Some(known) = self.known.get(id).await {
            return Ok(known);
        }
        let json = self.store.get_policy(tenant, id).await?;
        let json = json.ok_or_else(|| Error::internal(format!("policy {} is not stored", id.0)))?;
        let known = Arc::new(Known {
            policy: Policy::from_json(&json)?,
            json,
        });
        self.known.insert(id.clone(), known.clone()).await;
        Ok(known)
    }
}
