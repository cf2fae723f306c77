//! Compiles the contract without a system protoc, and reads the roles of each method out of its options.

use prost::Message;
use prost_reflect::{DescriptorPool, Value};
use std::fmt::Write;
use std::path::PathBuf;

const FILES: [&str; 10] = [
    "compaction", "control", "history", "ingress", "jobs", "memory", "message", "options", "policy", "router",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let files = FILES.map(|file| root.join(format!("colloquy/v1/{file}.proto")));

    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_imports(true).include_source_info(true).open_files(&files)?;
    // The compiler's own encoding keeps the custom options, which prost's typed form drops.
    let encoded = compiler.encode_file_descriptor_set();
    std::fs::write(out.join("colloquy.v1.binpb"), &encoded)?;
    std::fs::write(out.join("methods.rs"), methods(&DescriptorPool::decode(encoded.as_slice())?)?)?;

    let descriptors = prost_reflect::prost_types::FileDescriptorSet::decode(encoded.as_slice())?;
    tonic_prost_build::configure().build_transport(false).compile_fds(descriptors)?;
    Ok(())
}

/// A table of `(path, roles)`.
fn methods(pool: &DescriptorPool) -> Result<String, Box<dyn std::error::Error>> {
    let extension = pool.get_extension_by_name("colloquy.v1.roles").ok_or("no option `roles`")?;
    let mut table = String::from("&[\n");
    for service in pool.services().filter(|service| service.full_name().starts_with("colloquy.")) {
        for method in service.methods() {
            let options = method.options();
            let value = options.get_extension(&extension);
            let roles = value.as_list().unwrap_or_default().iter().filter_map(Value::as_enum_number);
            let roles: Vec<&str> = roles.filter_map(role).collect();
            writeln!(
                table,
                "    Method {{ path: \"/{}/{}\", roles: &[{}] }},",
                service.full_name(),
                method.name(),
                roles.join(", ")
            )?;
        }
    }
    table.push(']');
    Ok(table)
}

fn role(number: i32) -> Option<&'static str> {
    match number {
        1 => Some("CallerRole::Admin"),
        2 => Some("CallerRole::Agent"),
        3 => Some("CallerRole::Channel"),
        4 => Some("CallerRole::User"),
        5 => Some("CallerRole::Viewer"),
        6 => Some("CallerRole::Service"),
        7 => Some("CallerRole::Operator"),
        _ => None,
    }
}
