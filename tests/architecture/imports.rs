//! The imports between files: resolves `use` declarations and full paths with `self`, `super` and re-exports.
//!
//! It reads text. Comments, test modules and paths in macro bodies are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path in the crate: `["check", "facts", "catalog"]`. The crate root is empty.
pub type Module = Vec<String>;

/// The modules of `src` with their imports.
pub struct Imports {
    code: BTreeMap<Module, String>,
    /// Re-exports of each module: the name or `*`, and its source.
    exports: BTreeMap<Module, Vec<(String, Module, Vec<String>)>>,
}

impl Imports {
    /// Reads a source tree.
    pub fn of(source: &Path) -> Imports {
        let mut code = BTreeMap::new();
        read(source, &mut Vec::new(), &mut code);
        let tests: BTreeSet<Module> = code.iter().flat_map(|(module, text)| test_modules(module, text)).collect();
        let is_test = |module: &Module| (1..=module.len()).any(|length| tests.contains(&module[..length]));
        code.retain(|module, _| !is_test(module));
        let mut imports = Imports { code, exports: BTreeMap::new() };
        let mut exports: BTreeMap<Module, Vec<_>> = BTreeMap::new();
        for (module, text) in &imports.code {
            for path in uses(text).into_iter().filter(|used| used.is_public).flat_map(|used| used.paths) {
                if let Some((target, rest)) = imports.resolve(module, &path) {
                    let name = path.last().cloned().unwrap_or_default();
                    exports.entry(module.clone()).or_default().push((name, target, rest));
                }
            }
        }
        imports.exports = exports;
        imports
    }

    /// The modules outside of tests.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.code.keys()
    }

    /// The imported names of a module with their defining modules. A module that is imported itself has no name.
    pub fn names(&self, module: &Module) -> BTreeSet<(Module, Option<String>)> {
        let Some(text) = self.code.get(module) else { return BTreeSet::new() };
        let declared = uses(text).into_iter().flat_map(|used| used.paths);
        let named = declared.chain(written_out(text)).filter_map(|path| {
            let (target, rest) = self.resolve(module, &path)?;
            Some((self.definition(target, rest.clone()), rest.first().cloned()))
        });
        named.filter(|(target, _)| !target.starts_with(module)).collect()
    }

    /// The modules from which a module imports. Itself and its children are excluded: they count as one.
    pub fn from(&self, module: &Module) -> BTreeSet<Module> {
        self.names(module).into_iter().map(|(target, _)| target).collect()
    }

    /// The module at the start of a path, and the rest of the path; `None` for paths of other crates.
    fn resolve(&self, module: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module[..module.len().checked_sub(supers)?].to_vec(), &path[supers..]),
            child => {
                let inside: Module = module.iter().cloned().chain([child.to_owned()]).collect();
                self.code.contains_key(&inside).then(|| (module.clone(), path))?
            }
        };
        while let Some((first, others)) = rest.split_first() {
            at.push(first.clone());
            if !self.code.contains_key(&at) {
                at.pop();
                break;
            }
            rest = others;
        }
        Some((at, rest.to_vec()))
    }

    /// Follows re-exports from a module to the one that defines a name.
    fn definition(&self, mut module: Module, mut rest: Vec<String>) -> Module {
        // Each step enters another module, so a few steps suffice.
        for _ in 0..8 {
            let Some(name) = rest.first() else { break };
            let exported = self.exports.get(&module).into_iter().flatten();
            let mut found = exported
                .filter(|(exported, target, _)| exported == name || (exported == "*" && self.defines(target, name)));
            let Some((exported, target, inner)) = found.next() else { break };
            if exported != "*" {
                rest.splice(0..1, inner.iter().cloned());
            }
            module = target.clone();
        }
        module
    }

    fn defines(&self, module: &Module, name: &str) -> bool {
        let kinds = ["struct", "enum", "trait", "fn", "const", "static", "type"];
        let text = self.code.get(module).map_or("", String::as_str);
        kinds.iter().any(|kind| {
            let declared = format!("{kind} {name}");
            text.match_indices(&declared).any(|(at, _)| !text[at + declared.len()..].starts_with(is_word))
        })
    }

    /// Cycles: groups of modules that import each other, directly or not.
    pub fn circles(&self) -> Vec<Vec<Module>> {
        let next: BTreeMap<&Module, BTreeSet<Module>> =
            self.modules().map(|module| (module, self.from(module))).collect();
        let reached = |from: &Module| {
            let mut open: Vec<&Module> = next.get(from).into_iter().flatten().collect();
            let mut seen: BTreeSet<&Module> = BTreeSet::new();
            while let Some(module) = open.pop() {
                if seen.insert(module) {
                    open.extend(next.get(module).into_iter().flatten());
                }
            }
            seen
        };
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            self.modules().map(|module| (module, reached(module))).collect();
        let mut circles: Vec<Vec<Module>> = Vec::new();
        for module in self.modules().filter(|module| reach[module].contains(module)) {
            if circles.iter().any(|circle| circle.contains(module)) {
                continue;
            }
            let together = |other: &&&Module| reach.get(*other).is_some_and(|back| back.contains(module));
            let mut circle: Vec<Module> = reach[module].iter().filter(together).map(|other| (*other).clone()).collect();
            circle.sort();
            circles.push(circle);
        }
        circles
    }
}

/// One `use` declaration.
struct Use {
    is_public: bool,
    paths: Vec<Vec<String>>,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn read(folder: &Path, module: &mut Module, code: &mut BTreeMap<Module, String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        module.push(name);
        if path.is_dir() {
            read(&path, module, code);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            match module.last().map(String::as_str) {
                // `main.rs` uses the library from outside.
                Some("main") if module.len() == 1 => {}
                Some("lib") if module.len() == 1 => _ = code.insert(Vec::new(), without_tests(&text)),
                Some("mod") => _ = code.insert(module[..module.len() - 1].to_vec(), without_tests(&text)),
                _ => _ = code.insert(module.clone(), without_tests(&text)),
            }
        }
        module.pop();
    }
}

/// Code without comments and test modules. The declarations of test modules stay.
fn without_tests(text: &str) -> String {
    let mut code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n").collect::<String>();
    while let Some(at) = code.match_indices("#[cfg(test)]").map(|(at, _)| at).find(|at| opens_module(&code[*at..])) {
        let Some(open) = code[at..].find('{').map(|open| at + open) else { break };
        let mut depth = 0;
        let end = code[open..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        let end = end.map_or(code.len(), |(end, _)| open + end + 1);
        code.replace_range(at..end, "");
    }
    code
}

/// Whether a module with a body follows `#[cfg(test)]`.
fn opens_module(text: &str) -> bool {
    let after = text["#[cfg(test)]".len()..].trim_start();
    let after = after.strip_prefix("pub(crate) ").or_else(|| after.strip_prefix("pub ")).unwrap_or(after);
    after.starts_with("mod ") && after.find('{') < after.find(';').or(Some(usize::MAX))
}

/// The modules that a file declares for tests.
fn test_modules(module: &Module, text: &str) -> Vec<Module> {
    let declared = text.split("#[cfg(test)]").skip(1).filter_map(|after| {
        let (head, _) = after.split_once(';')?;
        let (_, name) = head.split_once("mod ")?;
        name.chars().all(is_word).then(|| name.to_owned())
    });
    declared.map(|name| module.iter().cloned().chain([name]).collect()).collect()
}

fn uses(text: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].rsplit('\n').next().unwrap_or("").trim();
        if !(before.is_empty() || before.starts_with("pub")) {
            continue;
        }
        let Some(end) = text[at..].find(';') else { continue };
        let mut paths = Vec::new();
        leaves(&text[at + "use ".len()..at + end], &[], &mut paths);
        found.push(Use { is_public: before.starts_with("pub"), paths });
    }
    found
}

/// The paths of an import tree: `a::{b, c::d}` gives `a::b` and `a::c::d`.
fn leaves(tree: &str, before: &[String], paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        let parts = path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
        let whole: Vec<String> = before.iter().cloned().chain(parts).collect();
        let is_itself = whole.last().is_some_and(|last| last == "self") && whole.len() > 1;
        paths.push(whole[..whole.len() - usize::from(is_itself)].to_vec());
        return;
    };
    let head = tree[..open].split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
    let before: Vec<String> = before.iter().cloned().chain(head).collect();
    let (mut depth, mut start) = (0, open + 1);
    for (at, c) in tree.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            if !tree[start..at].trim().is_empty() {
                leaves(&tree[start..at], &before, paths);
            }
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
}

/// Full paths in code that begin with `crate`, `self` or `super`.
fn written_out(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for root in ["crate::", "self::", "super::"] {
        for (at, _) in text.match_indices(root) {
            if text[..at].ends_with(|c: char| is_word(c) || c == ':') {
                continue;
            }
            let path: String = text[at..].chars().take_while(|c| is_word(*c) || *c == ':').collect();
            // A path that ends with `::` is the beginning of a `use` declaration.
            if !path.ends_with(':') {
                found.push(path.split("::").map(str::to_owned).collect());
            }
        }
    }
    found
}

#[test]
fn a_tree_of_imports_is_all_its_paths() {
    let paths = |text: &str| {
        let all: Vec<Vec<String>> = uses(text).into_iter().flat_map(|used| used.paths).collect();
        all.iter().map(|path| path.join("::")).collect::<Vec<_>>()
    };
    assert_eq!(
        paths("use super::{a::B, c::{self, D as E}, f};\n"),
        ["super::a::B", "super::c", "super::c::D", "super::f"]
    );
    assert_eq!(paths("pub(crate) use x::*;\n"), ["x::*"]);
    assert_eq!(paths("let reuse = 1; // use y;\n"), [""; 0]);
}

#[test]
fn a_circle_is_found_through_super_and_re_exports() {
    let code = [
        ("", "mod a; mod b; mod c;"),
        ("a", "use super::b::Two;"),
        ("b", "mod inner;\npub use inner::Two;"),
        ("b::inner", "fn f() { crate::c::g() }"),
        ("c", "use crate::a;\n"),
    ];
    let module = |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect::<Module>();
    let mut imports = Imports {
        code: code.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect(),
        exports: BTreeMap::new(),
    };
    imports.exports.insert(module("b"), vec![("Two".to_owned(), module("b::inner"), vec!["Two".to_owned()])]);
    assert_eq!(imports.circles(), [vec![module("a"), module("b::inner"), module("c")]]);
}

#[test]
fn what_only_tests_use_is_left_out() {
    let code = without_tests("use a::B;\n#[cfg(test)]\nmod tests {\n    use super::c;\n    mod d {}\n}\nfn e() {}\n");
    assert!(code.contains("fn e()") && !code.contains("super::c"), "{code}");
    assert_eq!(
        test_modules(&vec!["m".to_owned()], "#[cfg(test)]\nmod tests;\nmod other;\n"),
        [vec!["m".to_owned(), "tests".to_owned()]]
    );
}
