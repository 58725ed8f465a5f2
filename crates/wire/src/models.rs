//! What is known of each model.
