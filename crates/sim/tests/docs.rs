//! The page about the simulation names all that is in it.

use std::path::Path;

use yaoki_sim::coverage::wanted;

#[test]
fn every_fault_and_every_site_is_on_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulation.md");
    let page = std::fs::read_to_string(page).unwrap();
    let names = wanted().into_iter().flat_map(|(fault, site)| [fault, site]);
    let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_invariant_that_is_held_is_on_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/simulation.md")).unwrap();
    let mut missing = Vec::new();
    let mut folders = vec![root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let named = text.split("hold(\"").chain(text.split("broken(\"")).skip(1);
            let names = named.filter_map(|rest| rest.split('"').next()).filter(|name| name.len() <= 6);
            missing.extend(names.filter(|name| !page.contains(*name)).map(str::to_owned));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
