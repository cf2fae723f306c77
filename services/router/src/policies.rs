//! Effective policies, as control knows them.

use colloquy_proto::v1::control_service_client::ControlServiceClient;
use colloquy_proto::v1::{self};
use colloquy_service_kit::cache::Answers;
use colloquy_service_kit::client::request;
use colloquy_service_kit::{InternalChannel, from_status};
use colloquy_types::{AgentId, Policy, Result, TenantId};
use std::sync::Arc;

/// A policy and the JSON it came as; history stores it by its content.
#[derive(Debug)]
pub struct Effective {
    pub policy: Policy,
    pub json: String,
}

#[derive(Clone)]
pub struct Policies {
    control: ControlServiceClient<InternalChannel>,
    known: Answers<(TenantId, AgentId, String), Arc<Effective>>,
}

impl Policies {
    pub fn new(control: InternalChannel) -> Self {
        Self {
            control: ControlServiceClient::new(control),
            known: Answers::default(),
        }
    }

    /// The policy of an agent, with an account's overrides when one is named.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown agent or account; `DEPENDENCY`.
    pub async fn get(&self, tenant: TenantId, agent: &AgentId, account: &str) -> Result<Arc<Effective>> {
        let ask = || {
            let mut control = self.control.clone();
            let message = v1::ResolvePolicyRequest {
                agent_id: agent.to_string(),
                account_id: account.to_owned(),
            };
            async move {
                let answer = control
                    .resolve_policy(request(tenant, message))
                    .await
                    .map_err(from_status)?;
                let json = answer.into_inner().policy_json;
                Ok(Arc::new(Effective {
                    policy: Policy::from_json(&json)?,
                    json,
                }))
            }
        };
        self.known
            .get((tenant, agent.clone(), account.to_owned()), ask)
            .await
    }
}
