//! The names of a simulated disk: as seen, and as a power cut would leave them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Entry, Kind};

/// Links are followed this often, as by Linux.
const LINKS_MAX: usize = 40;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Folder,
    File(usize),
    Link(PathBuf),
}

/// All names. The root of absolute and of relative paths is always there.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    seen: BTreeMap<PathBuf, Name>,
    platter: BTreeMap<PathBuf, Name>,
    /// What is seen and not yet on the platter, oldest first.
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Put { path: PathBuf, name: Name },
    Drop { path: PathBuf },
    Move { from: PathBuf, to: PathBuf, name: Name },
}

impl Change {
    /// The folder whose sync makes it last.
    fn folder(&self) -> &Path {
        let (Change::Put { path, .. } | Change::Drop { path } | Change::Move { to: path, .. }) = self;
        folder(path)
    }

    fn touches(&self, path: &Path) -> bool {
        match self {
            Change::Put { path: at, .. } | Change::Drop { path: at } => at == path,
            Change::Move { from, to, .. } => from == path || to == path,
        }
    }

    fn apply(self, names: &mut BTreeMap<PathBuf, Name>) {
        match self {
            Change::Put { path, name } => drop(names.insert(path, name)),
            Change::Drop { path } => drop(names.remove(&path)),
            Change::Move { from, to, name } => {
                // One step: no crash sees both names or none.
                names.remove(&from);
                names.insert(to, name);
            }
        }
    }
}

impl Names {
    pub fn get(&self, path: &Path) -> Option<&Name> {
        if is_root(path) { Some(&Name::Folder) } else { self.seen.get(path) }
    }

    /// Returns the file at a path, following links.
    pub fn file(&self, path: &Path) -> Option<usize> {
        let mut path = path.to_path_buf();
        for _ in 0..LINKS_MAX {
            match self.get(&path)? {
                Name::File(index) => return Some(*index),
                Name::Link(target) => path = folder(&path).join(target),
                Name::Folder => return None,
            }
        }
        None
    }

    /// Returns the file that a path will name after any power cut.
    pub fn kept_file(&self, path: &Path) -> Option<usize> {
        let is_kept = |path: &Path| {
            is_root(path)
                || self.platter.contains_key(path) && !self.pending.iter().any(|change| change.touches(path))
        };
        match self.platter.get(path)? {
            Name::File(index) if path.ancestors().all(is_kept) => Some(*index),
            Name::File(_) | Name::Folder | Name::Link(_) => None,
        }
    }

    pub fn files(&self) -> impl Iterator<Item = usize> {
        self.seen.values().filter_map(|name| if let Name::File(index) = name { Some(*index) } else { None })
    }

    pub fn paths(&self) -> Vec<PathBuf> {
        self.seen.iter().filter(|(_, name)| **name != Name::Folder).map(|(path, _)| path.clone()).collect()
    }

    pub fn create(&mut self, path: &Path, name: Name) -> io::Result<()> {
        if self.get(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.get(folder(path)) != Some(&Name::Folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(Change::Put { path: path.to_path_buf(), name });
        Ok(())
    }

    pub fn create_folders(&mut self, path: &Path) -> io::Result<()> {
        match self.get(path) {
            Some(Name::Folder) => return Ok(()),
            Some(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            None => {}
        }
        self.create_folders(folder(path))?;
        self.create(path, Name::Folder)
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let name = self.seen.get(from).cloned().ok_or(io::ErrorKind::NotFound)?;
        if name == Name::Folder || self.get(folder(to)) != Some(&Name::Folder) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if self.get(to) == Some(&Name::Folder) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.change(Change::Move { from: from.to_path_buf(), to: to.to_path_buf(), name });
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        match self.seen.get(path) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(Name::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            Some(_) => {
                self.change(Change::Drop { path: path.to_path_buf() });
                Ok(())
            }
        }
    }

    pub fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        match self.seen.get(path) {
            None => return Err(io::ErrorKind::NotFound.into()),
            Some(Name::Folder) => {}
            Some(_) => return Err(io::ErrorKind::NotADirectory.into()),
        }
        if self.seen.keys().any(|at| at != path && at.starts_with(path)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        // What was removed from it does not come back in another folder of this name.
        self.pending.retain(|change| !change.folder().starts_with(path));
        self.platter.retain(|at, _| at == path || !at.starts_with(path));
        self.change(Change::Drop { path: path.to_path_buf() });
        Ok(())
    }

    pub fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        if self.get(path) != Some(&Name::Folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let entry = |(at, name): (&PathBuf, &Name)| {
            let kind = match name {
                Name::Folder => Kind::Folder,
                Name::File(_) => Kind::File,
                Name::Link(_) => Kind::Link,
            };
            let name = at.file_name()?.to_str()?.to_owned();
            (folder(at) == path).then_some(Entry { name, kind })
        };
        Ok(self.seen.iter().filter_map(entry).collect())
    }

    /// Makes the names in a folder last.
    pub fn sync(&mut self, path: &Path) -> io::Result<()> {
        if self.get(path) != Some(&Name::Folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let is_in = |change: &Change| change.folder() == path || is_root(change.folder()) && is_root(path);
        let (done, left) = std::mem::take(&mut self.pending).into_iter().partition(is_in);
        self.pending = left;
        for change in done as Vec<Change> {
            change.apply(&mut self.platter);
        }
        Ok(())
    }

    /// Puts a name, seen and on the platter, with its folders.
    pub fn poke(&mut self, path: &Path, name: Name) {
        for folder in path.ancestors().skip(1).filter(|path| !is_root(path)) {
            self.seen.insert(folder.to_path_buf(), Name::Folder);
            self.platter.insert(folder.to_path_buf(), Name::Folder);
        }
        self.seen.insert(path.to_path_buf(), name.clone());
        self.platter.insert(path.to_path_buf(), name);
    }

    /// The power went: of each folder's pending changes all, none, the first ones or just some came through.
    pub fn crash(&mut self, dice: &mut dyn FnMut() -> u64) {
        let mut fates: BTreeMap<PathBuf, (u64, u64)> = BTreeMap::new();
        for change in std::mem::take(&mut self.pending) {
            let (fate, left) =
                fates.entry(change.folder().to_path_buf()).or_insert_with(|| (dice() % 4, dice() % 8));
            let survives = match *fate {
                0 => false,
                1 => true,
                2 => {
                    let survives = *left > 0;
                    *left = left.saturating_sub(1);
                    survives
                }
                _ => dice() % 2 == 1,
            };
            if survives {
                change.apply(&mut self.platter);
            }
        }
        // A name whose folder was lost is out of reach. Sorted, so that parents come before what is in them.
        let mut kept: BTreeMap<PathBuf, Name> = BTreeMap::new();
        for (path, name) in std::mem::take(&mut self.platter) {
            if is_root(folder(&path)) || kept.get(folder(&path)) == Some(&Name::Folder) {
                kept.insert(path, name);
            }
        }
        self.platter = kept.clone();
        self.seen = kept;
    }

    fn change(&mut self, change: Change) {
        change.clone().apply(&mut self.seen);
        self.pending.push(change);
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == Path::new("/") || path == Path::new(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dice(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        }
    }

    #[test]
    fn a_rename_is_lost_or_whole_until_its_folder_is_synced() {
        let (old, new) = (PathBuf::from("/a/f"), PathBuf::from("/a/g"));
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let mut names = Names::default();
            names.poke(&old, Name::File(0));
            names.poke(&new, Name::File(1));
            assert_eq!(names.kept_file(&new), Some(1));
            names.rename(&old, &new).unwrap();
            assert_eq!(names.kept_file(&new), None);
            if seed % 2 == 0 {
                names.sync(Path::new("/a")).unwrap();
                assert_eq!(names.kept_file(&new), Some(0));
            }
            names.crash(&mut dice(seed));
            outcomes.insert((seed % 2, names.file(&old), names.file(&new)));
        }
        let lost = (1, Some(0), Some(1));
        assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [(0, None, Some(0)), (1, None, Some(0)), lost]);
    }

    #[test]
    fn a_file_in_a_folder_that_was_lost_is_lost() {
        let mut losses = 0;
        for seed in 0..100 {
            let mut names = Names::default();
            names.create_folders(Path::new("/a/b")).unwrap();
            names.create(Path::new("/a/b/f"), Name::File(0)).unwrap();
            names.sync(Path::new("/a/b")).unwrap();
            names.sync(Path::new("/a")).unwrap();
            names.crash(&mut dice(seed));
            losses += u64::from(names.file(Path::new("/a/b/f")).is_none());
        }
        assert!(0 < losses && losses < 100, "{losses}");
    }
}
