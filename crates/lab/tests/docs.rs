//! The scripts in docs/lab.md can be played, and every fault of the menu is among them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{ask, request};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use yaoki_lab::{Fault, Lab, Script, script_schema};

fn page() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    std::fs::read_to_string(path).unwrap()
}

/// The JSON of the page; what is only a step becomes a script of one.
fn scripts() -> Vec<Script> {
    let page = page();
    let blocks = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let whole = |block: &str| {
        let value: Value = serde_json::from_str(block).unwrap_or_else(|e| panic!("{e}\n{block}"));
        match value.get("steps") {
            Some(_) => block.to_owned(),
            None => format!("{{\"steps\": [{block}]}}"),
        }
    };
    blocks.map(|block| Script::parse(&whole(block)).unwrap_or_else(|e| panic!("{e}\n{block}"))).collect()
}

#[test]
fn every_fault_of_the_menu_is_shown_and_fires() {
    let mut shown = BTreeSet::new();
    for script in scripts() {
        let Some(fault) = script.steps[0].fault.clone() else { continue };
        shown.insert(fault.name().to_owned());
        let mut lab = Lab::new(script);
        ask(&mut lab, &request("hi"));
        assert!(lab.report().steps[0].fired, "{fault:?}");
    }
    assert_eq!(shown, menu());
}

/// The names of the faults, as the schema has them.
fn menu() -> BTreeSet<String> {
    let schema = script_schema();
    let forms = schema["$defs"]["Fault"]["oneOf"].as_array().unwrap();
    let names = forms.iter().flat_map(|form| match form["properties"].as_object() {
        Some(members) => members.keys().cloned().collect::<Vec<_>>(),
        None => {
            let words = form["enum"].as_array().cloned().unwrap_or_else(|| vec![form["const"].clone()]);
            words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
        }
    });
    names.collect()
}

#[test]
fn a_faults_name_is_its_name_in_scripts() {
    for (json, want) in [(json!("empty_body"), "empty_body"), (json!({ "ping_only": {} }), "ping_only")] {
        let fault: Fault = serde_json::from_value(json).unwrap();
        assert_eq!(fault.name(), want);
    }
}

#[test]
fn every_member_is_on_the_page() {
    let page = page();
    for kind in ["Script", "Step", "Holds", "Deliver", "Limits", "Defaults"] {
        let schema = script_schema();
        let members =
            if kind == "Script" { &schema["properties"] } else { &schema["$defs"][kind]["properties"] };
        for name in members.as_object().unwrap_or_else(|| panic!("no {kind}")).keys() {
            let is_there = page.contains(&format!("`{name}`")) || page.contains(&format!("\"{name}\""));
            assert!(is_there, "{kind}.{name} is not explained");
        }
    }
}
