//! gRPC: translate, call, map.

use crate::{accounts, agents, convert, keys, tenants};
use colloquy_proto::convert::id;
use colloquy_proto::v1::{self, control_service_server::ControlService};
use colloquy_service_kit::auth::tenant_of_request;
use colloquy_service_kit::status::{to_status, unimplemented};
use colloquy_storage::ControlStore;
use colloquy_types::Result;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub struct Control {
    pub store: Arc<dyn ControlStore>,
}

type Answer<T> = Result<Response<T>, Status>;

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(to_status)
}

#[tonic::async_trait]
impl ControlService for Control {
    async fn create_tenant(
        &self,
        request: Request<v1::CreateTenantRequest>,
    ) -> Answer<v1::CreateTenantResponse> {
        answer(tenants::create(&*self.store, request.into_inner()).await)
    }

    async fn list_tenants(
        &self,
        request: Request<v1::ListTenantsRequest>,
    ) -> Answer<v1::ListTenantsResponse> {
        answer(tenants::list(&*self.store, request.into_inner()).await)
    }

    async fn create_api_key(
        &self,
        request: Request<v1::CreateApiKeyRequest>,
    ) -> Answer<v1::CreateApiKeyResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        answer(keys::create(&*self.store, tenant, request.into_inner()).await)
    }

    async fn list_api_keys(
        &self,
        request: Request<v1::ListApiKeysRequest>,
    ) -> Answer<v1::ListApiKeysResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let listed = self.store.list_keys(tenant).await;
        answer(listed.map(|keys| v1::ListApiKeysResponse {
            api_keys: keys.into_iter().map(convert::key).collect(),
        }))
    }

    async fn revoke_api_key(
        &self,
        request: Request<v1::RevokeApiKeyRequest>,
    ) -> Answer<v1::RevokeApiKeyResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let key = id("key_id", &request.into_inner().key_id).map_err(to_status)?;
        answer(
            self.store
                .revoke_key(tenant, key)
                .await
                .map(|()| v1::RevokeApiKeyResponse {}),
        )
    }

    async fn put_agent(&self, request: Request<v1::PutAgentRequest>) -> Answer<v1::PutAgentResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let stored = agents::put(&*self.store, tenant, request.into_inner()).await;
        answer(stored.map(|agent| v1::PutAgentResponse { agent: Some(agent) }))
    }

    async fn get_agent(&self, request: Request<v1::GetAgentRequest>) -> Answer<v1::GetAgentResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let found = agents::get(&*self.store, tenant, &request.into_inner().agent_id).await;
        answer(found.map(|agent| v1::GetAgentResponse {
            agent: Some(convert::agent(agent)),
        }))
    }

    async fn list_agents(&self, request: Request<v1::ListAgentsRequest>) -> Answer<v1::ListAgentsResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let listed = self.store.list_agents(tenant).await;
        answer(listed.map(|agents| v1::ListAgentsResponse {
            agents: agents.into_iter().map(convert::agent).collect(),
        }))
    }

    async fn put_channel_account(
        &self,
        request: Request<v1::PutChannelAccountRequest>,
    ) -> Answer<v1::PutChannelAccountResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        answer(accounts::put(&*self.store, tenant, request.into_inner()).await)
    }

    async fn list_channel_accounts(
        &self,
        request: Request<v1::ListChannelAccountsRequest>,
    ) -> Answer<v1::ListChannelAccountsResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let listed = self.store.list_accounts(tenant).await;
        answer(listed.map(|accounts| {
            v1::ListChannelAccountsResponse {
                accounts: accounts
                    .into_iter()
                    .map(|account| convert::account(account, false))
                    .collect(),
            }
        }))
    }

    async fn link_identity(&self, _: Request<v1::LinkIdentityRequest>) -> Answer<v1::LinkIdentityResponse> {
        Err(unimplemented("LinkIdentity"))
    }

    async fn unlink_identity(
        &self,
        _: Request<v1::UnlinkIdentityRequest>,
    ) -> Answer<v1::UnlinkIdentityResponse> {
        Err(unimplemented("UnlinkIdentity"))
    }

    async fn list_identities(
        &self,
        _: Request<v1::ListIdentitiesRequest>,
    ) -> Answer<v1::ListIdentitiesResponse> {
        Err(unimplemented("ListIdentities"))
    }

    async fn explain_policy(
        &self,
        request: Request<v1::ExplainPolicyRequest>,
    ) -> Answer<v1::ExplainPolicyResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        answer(agents::explain_policy(&*self.store, tenant, request.into_inner()).await)
    }

    async fn list_audit(&self, _: Request<v1::ListAuditRequest>) -> Answer<v1::ListAuditResponse> {
        Err(unimplemented("ListAudit"))
    }

    async fn get_usage(&self, _: Request<v1::GetUsageRequest>) -> Answer<v1::GetUsageResponse> {
        Err(unimplemented("GetUsage"))
    }

    async fn verify_key(&self, request: Request<v1::VerifyKeyRequest>) -> Answer<v1::VerifyKeyResponse> {
        answer(
            keys::verify(&*self.store, &request.into_inner().key)
                .await
                .map(convert::principal),
        )
    }

    async fn resolve_account(
        &self,
        request: Request<v1::ResolveAccountRequest>,
    ) -> Answer<v1::ResolveAccountResponse> {
        answer(accounts::resolve(&*self.store, &request.into_inner().account_id).await)
    }

    async fn resolve_policy(
        &self,
        request: Request<v1::ResolvePolicyRequest>,
    ) -> Answer<v1::ResolvePolicyResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        answer(agents::resolve_policy(&*self.store, tenant, request.into_inner()).await)
    }
}
