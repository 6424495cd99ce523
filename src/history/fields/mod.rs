//! Declared fields: values at declared paths of declared resources, kept with the versions that show them.

pub mod path;
pub mod plural;

pub use path::{Path, PathError, Step};
pub use plural::ResourceName;
