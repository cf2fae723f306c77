//! What the servers do not serve yet, called and compared: the list can only shrink.

use colloquy_client::v1;
use colloquy_tests::cluster::Embedded;
use colloquy_tests::people::Tenant;
use serde_json::json;
use std::path::Path;
use tonic::Code;

/// Answered `UNIMPLEMENTED`, in the order of the alphabet. Taking a line away is progress, adding one is not.
pub const UNSERVED: [&str; 23] = [
    "Consolidate",
    "DeleteSession",
    "EraseSubject",
    "ExportSession",
    "ForkSession",
    "GetErasure",
    "GetReceipt",
    "GetUsage",
    "ImportSession",
    "LinkIdentity",
    "ListAudit",
    "ListCheckpoints",
    "ListIdentities",
    "PublishDelta",
    "RebuildContext",
    "ReportOverflow",
    "RestoreCheckpoint",
    "RewindSession",
    "SearchEntries",
    "SubmitAndWait",
    "UnlinkIdentity",
    "WatchSession",
    "WatchTurn",
];

#[test]
fn what_is_not_served_yet_is_listed() {
    let services = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("services");
    let mut found = Vec::new();
    for service in ["compactor", "control", "history", "ingress", "memory", "router"] {
        let text = std::fs::read_to_string(services.join(service).join("src/service.rs")).unwrap();
        found.extend(text.split("unimplemented(\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    found.sort();
    println!("not served yet: {}", found.join(", "));
    let listed: Vec<&str> = UNSERVED.to_vec();
    assert_eq!(found, listed);
}

#[tokio::test]
async fn an_unserved_method_says_so() {
    let server = Embedded::start().await;
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let status = tenant.admin.control().get_usage(v1::GetUsageRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    let status = tenant.admin.history().watch_session(v1::WatchSessionRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}
