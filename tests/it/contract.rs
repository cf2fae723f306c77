//! What the servers do not serve yet, called and compared: the list can only shrink.

use colloquy_proto::METHODS;
use colloquy_tests::both_ways;
use colloquy_tests::people::Tenant;
use colloquy_tests::raw::{Caller, call, name};
use colloquy_tests::server::Server;
use colloquy_types::CallerRole;
use serde_json::json;
use std::path::Path;
use tonic::Code;

both_ways! {
    every_method_that_is_not_listed_is_served,
}

/// Methods that answer `UNIMPLEMENTED`, one a line, in the order of the alphabet. Taking a line away is progress,
/// adding one is not.
const LISTED: &str = include_str!("unimplemented.txt");

/// The methods of the list.
pub fn unserved() -> Vec<&'static str> {
    LISTED.lines().collect()
}

#[test]
fn the_source_says_the_same_as_the_list() {
    let services = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("services");
    let mut found = Vec::new();
    for service in ["compactor", "control", "history", "ingress", "memory", "router"] {
        let text = std::fs::read_to_string(services.join(service).join("src/service.rs")).unwrap();
        let named = text
            .split("unimplemented(\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        found.extend(named.map(str::to_owned));
    }
    found.sort();
    println!("not served yet: {}", found.join(", "));
    assert_eq!(found, unserved());
}

async fn every_method_that_is_not_listed_is_served(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let admin = tenant.admin_key.as_str();
    let mut unserved_here = Vec::new();
    for method in METHODS {
        let may = |role: CallerRole| method.roles.contains(&role);
        let key = match () {
            () if may(CallerRole::Admin) => admin,
            () if may(CallerRole::Agent) => tenant.agent_key.as_str(),
            () if may(CallerRole::Service) => server.service_key.as_str(),
            () if may(CallerRole::Operator) => server.operator_key.as_str(),
            () => panic!("no key of the test may call {}", method.path),
        };
        let service = key == server.service_key;
        let caller = Caller {
            key: key.to_owned(),
            tenant: service.then(|| tenant.id.clone()),
        };
        if let Err(status) = call(&server.channel(method.path), method.path, &caller, Vec::new()).await {
            // An empty key is asked about here, and is a wrong one.
            let refused = status.code() == Code::Unauthenticated && name(method) != "VerifyKey";
            assert!(
                !refused && status.code() != Code::PermissionDenied,
                "{}: {status}",
                method.path
            );
            if status.code() == Code::Unimplemented {
                unserved_here.push(name(method));
            }
        }
    }
    unserved_here.sort_unstable();
    assert_eq!(unserved_here, unserved());
}
