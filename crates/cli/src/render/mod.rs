//! What a person sees: events as lines, a model's text as paragraphs, the live end of a terminal.

pub mod live;
pub mod markdown;
pub mod plain;
pub mod screen;
pub mod style;
#[cfg(test)]
mod tests;
pub mod text;
pub mod words;
