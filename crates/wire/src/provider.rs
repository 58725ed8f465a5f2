//! The model APIs we speak.
