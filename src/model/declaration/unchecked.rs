//! Values of a rules file as written, before they are checked.

use serde::Deserialize;
use std::marker::PhantomData;
use std::ops::Deref;
use toml::Spanned;

/// The text of a `T`, with its place in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent, bound = "")]
pub(super) struct Unchecked<T> {
    text: Spanned<String>,
    #[serde(skip)]
    of: PhantomData<T>,
}

impl<T> Unchecked<T> {
    pub fn into_text(self) -> Spanned<String> {
        self.text
    }
}

impl<T> From<Spanned<String>> for Unchecked<T> {
    fn from(text: Spanned<String>) -> Self {
        Unchecked { text, of: PhantomData }
    }
}

impl<T> Deref for Unchecked<T> {
    type Target = Spanned<String>;

    fn deref(&self) -> &Spanned<String> {
        &self.text
    }
}

/// The name of a declaration, which is part of slugs and reports.
#[derive(Clone, Debug)]
pub(super) enum Name {}

/// A text for people.
#[derive(Clone, Debug)]
pub(super) enum Words {}

#[cfg(test)]
mod schema {
    use super::{Name, Unchecked, Words};
    use crate::ingest::fields::{Path, ResourceName};
    use crate::model::expression::Expression;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use std::borrow::Cow;

    /// A text with a meaning.
    trait Text {
        const NAME: &str;

        fn schema() -> Schema;
    }

    impl Text for Name {
        const NAME: &str = "name";

        fn schema() -> Schema {
            json_schema!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,79}$" })
        }
    }

    impl Text for Words {
        const NAME: &str = "words";

        fn schema() -> Schema {
            json_schema!({ "type": "string" })
        }
    }

    impl Text for ResourceName {
        const NAME: &str = "resource";

        fn schema() -> Schema {
            json_schema!({
                "description": "A plural, with its group if it has one: `pods`, `ippools.whereabouts.cni.cncf.io`. Without a group, it means this plural in every group; `services.core` means the core group.",
                "type": "string",
                "pattern": r"^(\*|[a-z0-9.-]+)$",
            })
        }
    }

    impl Text for Path {
        const NAME: &str = "path";

        fn schema() -> Schema {
            json_schema!({
                "description": "A path into an object: `spec.nodeName`, `spec.ports[*].nodePort`, `metadata.annotations[\"example.com/a.b\"].json()[*].ip`.",
                "type": "string",
                "minLength": 1,
            })
        }
    }

    impl Text for Expression {
        const NAME: &str = "expression";

        fn schema() -> Schema {
            json_schema!({ "description": "An expression in CEL.", "type": "string" })
        }
    }

    impl<T: Text> JsonSchema for Unchecked<T> {
        fn schema_name() -> Cow<'static, str> {
            T::NAME.into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            T::schema()
        }
    }
}
