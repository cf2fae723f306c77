//! What every method, message and field of the contract owes its reader.

use colloquy_proto::{FILE_DESCRIPTOR_SET, METHODS};
use colloquy_types::CallerRole;
use prost_reflect::prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use prost_reflect::{DescriptorPool, MethodDescriptor};
use std::collections::HashSet;

fn pool() -> DescriptorPool {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the build made it")
}

fn methods(pool: &DescriptorPool) -> Vec<MethodDescriptor> {
    let own = pool
        .services()
        .filter(|service| service.full_name().starts_with("colloquy.v1."));
    own.flat_map(|service| service.methods().collect::<Vec<_>>())
        .collect()
}

fn roles_of(path: &str) -> &'static [CallerRole] {
    METHODS
        .iter()
        .find(|method| method.path == path)
        .unwrap_or_else(|| panic!("no method {path}"))
        .roles
}

#[test]
fn every_method_names_its_roles() {
    let without: Vec<&str> = METHODS
        .iter()
        .filter(|method| method.roles.is_empty())
        .map(|method| method.path)
        .collect();
    assert!(without.is_empty(), "without roles: {without:?}");
    let pool = pool();
    let declared: HashSet<String> = methods(&pool)
        .iter()
        .map(|method| format!("/{}/{}", method.parent_service().full_name(), method.name()))
        .collect();
    let listed: HashSet<String> = METHODS.iter().map(|method| method.path.to_owned()).collect();
    assert_eq!(listed, declared);
    assert_eq!(METHODS.len(), declared.len());
}

#[test]
fn the_table_says_what_the_option_says() {
    use CallerRole::{Admin, Agent, Channel, Operator, Service, User};
    assert_eq!(roles_of("/colloquy.v1.RouterService/AcquireTurn"), [Agent]);
    assert_eq!(
        roles_of("/colloquy.v1.IngressService/Submit"),
        [Channel, User, Admin]
    );
    assert_eq!(roles_of("/colloquy.v1.ControlService/CreateTenant"), [Operator]);
    assert_eq!(roles_of("/colloquy.v1.HistoryService/AcceptMessage"), [Service]);
}

#[test]
fn what_works_across_tenants_is_for_services_or_the_operator_alone() {
    for path in [
        "HistoryService/ListRunnable",
        "ControlService/VerifyKey",
        "ControlService/ResolveAccount",
    ] {
        assert_eq!(
            roles_of(&format!("/colloquy.v1.{path}")),
            [CallerRole::Service],
            "{path}"
        );
    }
    let mixed: Vec<&str> = METHODS
        .iter()
        .filter(|method| method.roles.contains(&CallerRole::Operator) && method.roles.len() > 1)
        .map(|method| method.path)
        .collect();
    assert!(mixed.is_empty(), "an operator belongs to no tenant: {mixed:?}");
}

#[test]
fn every_method_has_a_request_and_a_response_of_its_own() {
    let mut seen = HashSet::new();
    for method in methods(&pool()) {
        for message in [method.input(), method.output()] {
            assert!(
                seen.insert(message.full_name().to_owned()),
                "{} is used twice",
                message.full_name()
            );
        }
    }
}

#[test]
fn everything_is_documented() {
    let bare: Vec<String> = pool()
        .files()
        .filter(|file| file.package_name() == "colloquy.v1")
        .flat_map(|file| Comments::of(file.file_descriptor_proto()).missing(file.file_descriptor_proto()))
        .collect();
    assert!(bare.is_empty(), "without a comment: {bare:#?}");
}

/// The commented places of one file, by descriptor path, and the names of those without.
struct Comments {
    documented: HashSet<Vec<i32>>,
    bare: Vec<String>,
}

// Field numbers of `descriptor.proto`: they make up the paths of source locations.
const FILE_PACKAGE: i32 = 2;
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const FILE_SERVICE: i32 = 6;
const FILE_EXTENSION: i32 = 7;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;
const MESSAGE_ENUM: i32 = 4;
const MESSAGE_ONEOF: i32 = 8;
const ENUM_VALUE: i32 = 2;
const SERVICE_METHOD: i32 = 2;

impl Comments {
    fn of(file: &FileDescriptorProto) -> Self {
        let commented = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
        let documented = file
            .source_code_info
            .iter()
            .flat_map(|info| &info.location)
            .filter(|location| commented(&location.leading_comments))
            .map(|location| location.path.clone())
            .collect();
        Self {
            documented,
            bare: Vec::new(),
        }
    }

    fn missing(mut self, file: &FileDescriptorProto) -> Vec<String> {
        self.check(&[FILE_PACKAGE], file.name());
        for (i, message) in numbered(&file.message_type) {
            self.message(&[FILE_MESSAGE, i], message);
        }
        for (i, enumeration) in numbered(&file.enum_type) {
            self.enumeration(&[FILE_ENUM, i], enumeration);
        }
        for (i, extension) in numbered(&file.extension) {
            self.check(&[FILE_EXTENSION, i], extension.name());
        }
        for (i, service) in numbered(&file.service) {
            self.check(&[FILE_SERVICE, i], service.name());
            for (j, method) in numbered(&service.method) {
                self.check(&[FILE_SERVICE, i, SERVICE_METHOD, j], method.name());
            }
        }
        self.bare
    }

    fn message(&mut self, path: &[i32], message: &DescriptorProto) {
        self.check(path, message.name());
        for (i, field) in numbered(&message.field) {
            self.check(
                &[path, &[MESSAGE_FIELD, i]].concat(),
                &format!("{}.{}", message.name(), field.name()),
            );
        }
        // `optional` makes a oneof of its own that nobody wrote; they stand last.
        let synthetic = message
            .field
            .iter()
            .filter(|field| field.proto3_optional())
            .count();
        for (i, oneof) in numbered(&message.oneof_decl[..message.oneof_decl.len() - synthetic]) {
            self.check(
                &[path, &[MESSAGE_ONEOF, i]].concat(),
                &format!("{}.{}", message.name(), oneof.name()),
            );
        }
        for (i, nested) in numbered(&message.nested_type) {
            self.message(&[path, &[MESSAGE_NESTED, i]].concat(), nested);
        }
        for (i, nested) in numbered(&message.enum_type) {
            self.enumeration(&[path, &[MESSAGE_ENUM, i]].concat(), nested);
        }
    }

    fn enumeration(&mut self, path: &[i32], enumeration: &EnumDescriptorProto) {
        self.check(path, enumeration.name());
        for (i, value) in numbered(&enumeration.value) {
            self.check(&[path, &[ENUM_VALUE, i]].concat(), value.name());
        }
    }

    fn check(&mut self, path: &[i32], name: &str) {
        if !self.documented.contains(path) {
            self.bare.push(name.to_owned());
        }
    }
}

fn numbered<T>(items: &[T]) -> impl Iterator<Item = (i32, &T)> {
    items
        .iter()
        .enumerate()
        .map(|(i, item)| (i32::try_from(i).expect("descriptors are short"), item))
}
