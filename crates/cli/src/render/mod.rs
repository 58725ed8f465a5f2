//! What a person sees.
pub mod markdown;
pub mod plain;
pub mod style;
