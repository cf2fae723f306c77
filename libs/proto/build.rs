//! Compiles the contract without a system protoc, and reads the roles of each method out of its options.

use prost::Message;
use prost_reflect::{DescriptorPool, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let files = contract(&root.join("colloquy/v1"))?;

    let mut compiler = protox::Compiler::new([&root])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(&files)?;
    // The compiler's own encoding keeps the custom options, which prost's typed form drops.
    let encoded = compiler.encode_file_descriptor_set();
    std::fs::write(out.join("colloquy.v1.binpb"), &encoded)?;
    std::fs::write(
        out.join("methods.rs"),
        methods(&DescriptorPool::decode(encoded.as_slice())?)?,
    )?;

    let descriptors = prost_reflect::prost_types::FileDescriptorSet::decode(encoded.as_slice())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .compile_fds(descriptors)?;
    Ok(())
}

/// Every file of the contract, in a stable order; a new one is part of it by being there.
fn contract(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = entries.collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "proto"));
    files.sort();
    Ok(files)
}

/// A table of `(path, roles)`.
fn methods(pool: &DescriptorPool) -> Result<String, Box<dyn std::error::Error>> {
    let extension = pool
        .get_extension_by_name("colloquy.v1.roles")
        .ok_or("no option `roles`")?;
    let mut table = String::from("&[\n");
    for service in pool
        .services()
        .filter(|service| service.full_name().starts_with("colloquy."))
    {
        for method in service.methods() {
            let options = method.options();
            let value = options.get_extension(&extension);
            let numbers = value
                .as_list()
                .unwrap_or_default()
                .iter()
                .filter_map(Value::as_enum_number);
            let roles = numbers.map(role).collect::<Result<Vec<&str>, String>>()?;
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

/// A role without a counterpart fails the build: left out, it would close the method to those who may call it.
fn role(number: i32) -> Result<&'static str, String> {
    Ok(match number {
        1 => "CallerRole::Admin",
        2 => "CallerRole::Agent",
        3 => "CallerRole::Channel",
        4 => "CallerRole::User",
        5 => "CallerRole::Viewer",
        6 => "CallerRole::Service",
        7 => "CallerRole::Operator",
        other => return Err(format!("role {other} of the option `roles` is not in this table")),
    })
}
