//! JSON schemas that `docs/` has: generated from the types, compared with the file. `UPDATE=1` writes the file.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use std::path::Path;

/// The documents that a schema describes.
pub(crate) enum Contract {
    /// TOML that users write and this program reads.
    Toml,
    /// JSON that this program writes.
    Json,
}

/// The schema of a type, after a comparison with its file.
pub(crate) fn committed_schema<T: JsonSchema>(file: &str, contract: Contract) -> Value {
    let settings = match contract {
        Contract::Toml => {
            SchemaSettings::draft2020_12().for_deserialize().with_transform(RecursiveTransform(without_null))
        }
        Contract::Json => SchemaSettings::draft2020_12().for_serialize(),
    };
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let text = format!("{schema:#}\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{file} is not what the types say; UPDATE=1 writes it");
    schema
}

/// TOML has no null: an optional field is left out.
fn without_null(schema: &mut Schema) {
    let null = serde_json::json!({ "type": "null" });
    if let Some([some, other]) = schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
        && *other == null
        && let Some(some) = some.as_object().cloned()
    {
        schema.remove("anyOf");
        some.into_iter().for_each(|(word, value)| drop(schema.insert(word, value)));
    }
    if let Some([some, other]) = schema.get("type").and_then(Value::as_array).map(Vec::as_slice)
        && other == "null"
    {
        let some = some.clone();
        schema.insert("type".to_owned(), some);
    }
}
