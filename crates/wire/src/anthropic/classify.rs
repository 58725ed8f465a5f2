//! Refusals and errors of the API as a `Failure`.
