#![no_main]

use retrograde::history::{Domains, load, sketch};
use retrograde::ingest::{FileId, InputFile};
use retrograde::model::Declarations;
use std::sync::Arc;

/// Machines that violate the rules of the guide.
const STORY: &str = include_str!("../../../histories/rules-file/invariant/violation.sketch");

// A rules file is valid, or its errors have places. A valid one is evaluated, whatever its expressions do.
libfuzzer_sys::fuzz_target!(|text: &str| {
    let own = match Declarations::read("fuzz.toml", text) {
        Ok(own) => own,
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            return mistakes.iter().for_each(|mistake| drop(mistake.to_string()));
        }
    };
    let mut declarations = Declarations::shipped().clone();
    declarations.add(own);
    let read = retrograde::read_options_for(&declarations);
    let evidence = sketch::evidence(STORY).expect("a sketch");
    let files = evidence.files.iter().enumerate();
    let inputs = files.map(|(id, (name, text))| InputFile::in_memory(FileId(id as u32), name, text.as_bytes()));
    let history = load(inputs.collect(), &read, &Domains::default(), &());
    let mut options = retrograde::Options::default();
    options.check.declarations = Arc::new(declarations);
    retrograde::judge(&history, &options);
});
