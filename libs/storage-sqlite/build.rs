//! Embedded migrations are read by a macro, so the compiler does not see that they change.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
