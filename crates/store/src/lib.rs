//! Yaoki remembers: the session log, blobs and atomic file replacement.
//!
//! Promises: what a sync covered is found again or its loss is told; nothing is written twice or torn in silence.
//! It knows bytes, lines and files. What a record means is core's to know, and when a record must be
//! durable is the caller's to say.

mod ballast;
pub mod blobs;
mod chain;
pub mod disk;
mod errors;
mod files;
mod findings;
mod folders;
mod line;
mod log;
pub mod mem;
pub mod mutants;
mod open;
mod real;
pub mod replace;
mod reseal;
mod scan;
pub mod sessions;

pub use blobs::{BlobRef, Blobs, Hash};
pub use chain::GAP;
pub use disk::Disk;
pub use errors::{AppendError, CreateError, OpenError, ReadError, SyncError};
pub use findings::{Findings, Foreign, Gap, Torn, Why};
pub use line::{FORMAT, LINE_BYTES_MAX, Line, NewLine};
pub use log::{Durability, SessionLog};
pub use open::{Opened, read_only};
pub use real::RealDisk;
pub use replace::replace_file;
