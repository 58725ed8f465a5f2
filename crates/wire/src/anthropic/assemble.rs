//! Stream events and plain answers as a `Reply`.
