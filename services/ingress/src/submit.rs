//! `Submit`: a message from a client with a credential instead of a webhook's signature.

use crate::service::Ingress;
use colloquy_proto::convert::required;
use colloquy_proto::v1::{self, submit_request::Target};
use colloquy_types::key::Place;
use colloquy_types::message::Route;
use colloquy_types::{CallerRole, Error, Principal, Result, SessionKey, TenantId};

/// Longest idempotency key, in bytes.
const MAX_KEY_BYTES: usize = 512;

pub async fn submit(
    ingress: &Ingress,
    principal: &Principal,
    tenant: TenantId,
    request: v1::SubmitRequest,
) -> Result<v1::AcceptResult> {
    if request.idempotency_key.is_empty() || request.idempotency_key.len() > MAX_KEY_BYTES {
        return Err(Error::invalid(
            "idempotency_key",
            format!("must have 1 to {MAX_KEY_BYTES} bytes"),
        ));
    }
    let mut routed = match required("target", request.target)? {
        Target::Route(target) => by_route(ingress, principal, tenant, target).await?,
        Target::SessionKey(key) => by_key(ingress, principal, tenant, &key).await?,
    };
    routed.sender = request.sender;
    let is_person = !principal.has(CallerRole::Admin) && principal.has(CallerRole::User);
    if is_person {
        routed.sender = Some(v1::Author {
            id: principal.subject.clone(),
            name: String::new(),
        });
    }
    routed.authorised |= is_person || principal.has(CallerRole::Admin);
    let mut message = required("message", request.message)?;
    let is_admin = principal.has(CallerRole::Admin);
    if !is_admin {
        own_words(&mut message, routed.sender.as_ref(), is_person);
    }
    routed.message = Some(message);
    // Scoped to the caller: two clients cannot collide, a client cannot probe another's keys.
    routed.dedupe_key = format!(
        "submit:{}:{}:{}",
        principal.subject.len(),
        principal.subject,
        request.idempotency_key
    );
    routed.mode = request.mode;
    // What is the system's own, and what waits behind people, is for the operator to say.
    if is_admin {
        routed.kind = request.kind;
        routed.lane = request.lane;
    }
    routed.debounce = request.debounce;
    routed.strict_duplicates = true;
    ingress.route(tenant, routed).await
}

/// A person speaks for themselves; a channel says who wrote, and whether the words are another's, but nobody but the
/// product and its operator speaks as the system or as an agent.
fn own_words(message: &mut v1::Message, sender: Option<&v1::Author>, is_person: bool) {
    message.author = sender.cloned();
    let untrusted = message.provenance() == v1::Provenance::Untrusted;
    let provenance = if untrusted {
        v1::Provenance::Untrusted
    } else {
        v1::Provenance::Owner
    };
    message.provenance = provenance.into();
    message.visibility = v1::Visibility::Unspecified.into();
    if is_person {
        message.source = None;
        message.at = None;
    }
}

async fn by_route(
    ingress: &Ingress,
    principal: &Principal,
    tenant: TenantId,
    target: v1::SubmitTarget,
) -> Result<v1::RouteMessageRequest> {
    let unknown = || Error::not_found("account", &target.account);
    let account = ingress.accounts.find(&target.account).await?;
    let bound = principal.account.as_ref().is_some_and(|own| *own != account.id);
    if account.tenant != tenant || bound {
        return Err(unknown());
    }
    let may_route = principal.has(CallerRole::Admin) || principal.has(CallerRole::Channel);
    let own_chat = account.channel.as_str() == "ws" && target.chat == principal.subject;
    if !may_route && !own_chat {
        return Err(unknown());
    }
    if target.chat.trim().is_empty() {
        return Err(Error::invalid("route.chat", "is blank"));
    }
    let thread = [&target.topic, &target.thread]
        .into_iter()
        .find(|text| !text.is_empty())
        .cloned();
    let route = Route {
        channel: account.channel.clone(),
        account: account.id.clone(),
        chat: target.chat.clone(),
        thread,
    };
    Ok(v1::RouteMessageRequest {
        agent: account.agent.to_string(),
        channel: account.channel.to_string(),
        account: account.id.to_string(),
        authorised: target.chat_kind == "direct",
        chat_kind: target.chat_kind,
        chat: target.chat,
        thread: target.thread,
        topic: target.topic,
        route: Some(route.into()),
        ..Default::default()
    })
}

async fn by_key(
    ingress: &Ingress,
    principal: &Principal,
    tenant: TenantId,
    text: &str,
) -> Result<v1::RouteMessageRequest> {
    let key = SessionKey::parse(text).map_err(|error| error.within("session_key"))?;
    if !may_name(ingress, principal, tenant, &key).await? {
        return Err(Error::not_found("session", text));
    }
    Ok(v1::RouteMessageRequest {
        agent: key.agent().to_string(),
        session_key: key.canonical(),
        ..Default::default()
    })
}

/// An admin names any key, a person their own, a channel those of its own account's chats.
async fn may_name(
    ingress: &Ingress,
    principal: &Principal,
    tenant: TenantId,
    key: &SessionKey,
) -> Result<bool> {
    if principal.has(CallerRole::Admin) {
        return Ok(true);
    }
    if principal.has(CallerRole::User) {
        return Ok(principal.owns(key));
    }
    let Some(own) = &principal.account else {
        return Ok(false);
    };
    let account = ingress.accounts.find(own.as_str()).await?;
    let same_chat = |place: &Place| match place {
        Place::Chat {
            channel,
            account: named,
            ..
        } => {
            channel == account.channel.as_str() && named.as_deref().is_none_or(|named| named == own.as_str())
        }
        _ => false,
    };
    Ok(account.tenant == tenant && account.agent == *key.agent() && same_chat(key.place()))
}
