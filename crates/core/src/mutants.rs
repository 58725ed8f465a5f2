//! Seeded bugs, to see that the checks have teeth.
//!
//! `mutant!("name")` is `false`, and gone, in every ordinary build. In a build with `--cfg mutants` it is true
//! for the one name chosen with [`choose`].

/// Whether the seeded bug of this name is on.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {{
        #[cfg(mutants)]
        {
            $crate::mutants::is($name)
        }
        #[cfg(not(mutants))]
        {
            false
        }
    }};
}

#[cfg(mutants)]
mod chosen {
    use std::sync::RwLock;

    static CHOSEN: RwLock<Option<String>> = RwLock::new(None);

    /// Turns one seeded bug on, for the whole process; `None` turns all off.
    pub fn choose(name: Option<&str>) {
        *CHOSEN.write().expect("nothing panics under this lock") = name.map(str::to_owned);
    }

    pub fn is(name: &str) -> bool {
        CHOSEN.read().expect("nothing panics under this lock").as_deref() == Some(name)
    }
}

#[cfg(mutants)]
pub use chosen::{choose, is};
