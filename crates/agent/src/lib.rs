//! placeholder

pub mod executor;
#[cfg(feature = "tools")]
pub mod runner;
#[cfg(feature = "tools")]
pub mod tools;
