//! The rules of `docs/ARCHITECTURE.md` that sources can be held to.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What each module of `src/` may use beside itself. `api` and `bin` may use everything.
const MAY_USE: [(&str, &[&str]); 12] = [
    ("error", &[]),
    ("quant", &["error"]),
    ("gguf", &["error", "quant"]),
    // A crate of its own, so that a page loads it only when it needs it.
    ("grammar", &[]),
    ("text", &["error", "gguf"]),
    ("kv", &["error"]),
    ("doctor", &["error"]),
    ("compute", &["error"]),
    ("kernels", &["error", "compute", "quant"]),
    ("model", &["error", "gguf", "quant", "kernels", "compute", "kv"]),
    ("engine", &["error", "kv", "text", "model"]),
    ("simulation", &["error", "gguf", "kv", "text", "model", "engine"]),
];

/// Modules that nothing may use.
const TOP: [&str; 2] = ["api", "bin"];

/// Crates that only some modules may name: the browser's side, the GPU, and grammars.
const CRATE_HOMES: [(&str, &[&str]); 9] = [
    ("wasm_bindgen", &["api", "grammar"]),
    ("wasm_bindgen_futures", &["api"]),
    ("js_sys", &["api", "grammar"]),
    ("web_sys", &["api"]),
    ("serde_wasm_bindgen", &["api"]),
    ("wgpu", &["compute"]),
    ("pagewise_grammar", &["text"]),
    ("llguidance", &["grammar"]),
    ("toktrie", &["grammar"]),
];

/// Files of `src/kernels` that are not a kernel: what several of them have in common.
const NOT_KERNELS: [&str; 4] = ["mod", "projection", "random", "self_attention"];

const MAX_LINES: usize = 400;

/// Every file below `folder` (relative to the repository) with one of the extensions, in order of path.
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        // js/ and www/ may be absent from a source package.
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| extensions.contains(&e.to_str().unwrap())) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A path as people write it.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The stems of the WGSL or Rust files directly in a folder.
fn stems(folder: &str) -> BTreeSet<String> {
    let is_direct = |path: &PathBuf| path.parent() == Some(&root().join(folder));
    let stem = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files(folder, &["rs", "wgsl"]).into_iter().filter(is_direct).map(stem).collect()
}

/// Rust code with comments and the contents of strings and character literals blanked out; lines stay lines.
fn code_only(source: &str) -> String {
    let mut code = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let len = literal_len(rest, code.chars().next_back());
        let skipped = &rest[..len];
        code.extend(skipped.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        if len == 0 {
            code.push(first);
        }
        rest = &rest[len.max(first.len_utf8() * usize::from(len == 0))..];
    }
    code
}

/// Bytes of the comment, string or character literal that `rest` begins with; 0 if none.
fn literal_len(rest: &str, before: Option<char>) -> usize {
    let end_of = |from: usize, end: &str| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return end_of(2, "*/");
    }
    let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !is_word && rest.starts_with('r') {
        let hashes = rest[1..].chars().take_while(|&c| c == '#').count();
        if rest[1 + hashes..].starts_with('"') {
            return end_of(hashes + 2, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    if rest.starts_with('"') {
        return quoted_len(rest, '"');
    }
    // 'x', '\n' and '\u{1f}' are literals; 'a in a type is a lifetime.
    let is_char = rest.starts_with("'\\") || rest.starts_with('\'') && rest.chars().nth(2) == Some('\'');
    if is_char { quoted_len(rest, '\'') } else { 0 }
}

/// Bytes up to and with the closing quote of a literal with escapes.
fn quoted_len(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    rest.len()
}

/// The identifiers of a piece of code, each with the byte after it.
fn words(code: &str) -> impl Iterator<Item = (&str, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + code[at..].find(is_word)?;
        let end = code[start..].find(|c| !is_word(c)).map_or(code.len(), |len| start + len);
        at = end;
        Some((&code[start..end], end))
    })
}

/// The module path of a source file: `["kv", "pool"]` for `src/kv/pool.rs`, `["kv"]` for `src/kv/mod.rs`.
fn module_path(path: &str) -> Vec<&str> {
    let path = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    path.split('/').filter(|part| !["mod", "lib"].contains(part)).collect()
}

/// The top-level modules that a file uses through `crate::`, `pagewise::` or enough `super::`.
fn used_modules(path: &str, code: &str) -> BTreeSet<String> {
    let depth = module_path(path).len();
    let mut used = BTreeSet::new();
    let mut supers = 0;
    for (word, end) in words(code) {
        let Some(tail) = code[end..].trim_start().strip_prefix("::") else {
            supers = 0;
            continue;
        };
        supers = if word == "super" { supers + 1 } else { 0 };
        if word == "crate" || word == "pagewise" || (word == "super" && supers == depth) {
            used.extend(first_segments(tail));
        }
    }
    // `Error` and `Result` stand at the crate's root.
    let top = |segment: &str| if segment.starts_with(char::is_uppercase) { "error" } else { segment }.to_owned();
    used.iter().filter(|segment| *segment != "super").map(|segment| top(segment)).collect()
}

/// The first segments of what follows a `::`: one, or those of a `{}` list.
fn first_segments(tail: &str) -> Vec<String> {
    let tail = tail.trim_start();
    let first = |text: &str| words(text).next().map(|(word, _)| word.to_owned());
    let Some(list) = tail.strip_prefix('{') else {
        return first(tail).into_iter().collect();
    };
    let (mut items, mut depth) = (vec![String::new()], 0_usize);
    for c in list.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => items.push(String::new()),
            _ => items.last_mut().unwrap().push(c),
        }
        depth = depth + usize::from(c == '{') - usize::from(c == '}');
    }
    items.iter().filter_map(|item| first(item)).collect()
}

/// The uses of a file that the table does not allow.
fn forbidden_uses(path: &str, code: &str) -> Vec<String> {
    let Some(&module) = module_path(path).first() else {
        return Vec::new(); // lib.rs names all modules
    };
    if TOP.contains(&module) {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
        return vec![format!("{path}: the module `{module}` is not in the table")];
    };
    let is_forbidden = |used: &String| used != module && !allowed.contains(&used.as_str());
    let problem = |used: String| format!("{path}: `{module}` may not use `{used}`");
    used_modules(path, code).into_iter().filter(is_forbidden).map(problem).collect()
}

/// Crates named outside their home, and the word that must not be.
fn forbidden_words(path: &str, code: &str) -> Vec<String> {
    let module = module_path(path).first().copied().unwrap_or_default().to_owned();
    let mut problems = BTreeSet::new();
    for (word, _) in words(code) {
        if word == "unsafe" {
            problems.insert(format!("{path}: unsafe code"));
        }
        let is_away = |(name, homes): &&(&str, &[&str])| *name == word && !homes.contains(&module.as_str());
        if let Some((name, homes)) = CRATE_HOMES.iter().find(is_away) {
            problems.insert(format!("{path}: `{name}` is used outside src/{}", homes.join(" and src/")));
        }
    }
    problems.into_iter().collect()
}

/// All problems that `find` sees in the Rust sources.
fn problems(find: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let sources = files("src", &["rs"]);
    assert!(sources.len() > 10, "the sources were not found");
    let problems = |path: PathBuf| find(&name(&path), &code_only(&fs::read_to_string(&path).unwrap()));
    sources.into_iter().flat_map(problems).collect()
}

#[test]
fn dependencies_run_one_way() {
    assert_eq!(problems(forbidden_uses), Vec::<String>::new());
}

#[test]
fn crates_stay_in_their_modules_and_nothing_is_unsafe() {
    assert_eq!(problems(forbidden_words), Vec::<String>::new());
}

#[test]
fn files_are_read_in_one_sitting() {
    let mut long = Vec::new();
    for folder in ["src", "js/src", "www/src", "shaders"] {
        for path in files(folder, &["rs", "wgsl", "ts", "tsx", "js", "mjs", "css"]) {
            let num_lines = fs::read_to_string(&path).unwrap().lines().count();
            if num_lines > MAX_LINES {
                long.push(format!("{}: {num_lines} lines, {MAX_LINES} allowed", name(&path)));
            }
        }
    }
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn every_kernel_has_its_shader() {
    let mut kernels = stems("src/kernels");
    NOT_KERNELS.iter().for_each(|stem| assert!(kernels.remove(*stem), "src/kernels/{stem}.rs is gone"));
    assert_eq!(kernels, stems("shaders"));
}

#[test]
fn every_format_piece_has_its_codec() {
    let pieces = stems("shaders/quant");
    assert_eq!(pieces.difference(&stems("src/quant")).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(pieces.len(), pagewise::quant::Format::ALL.len());
}

#[test]
fn the_scan_sees_what_it_should() {
    let uses = |path, source| forbidden_uses(path, &code_only(source));
    let bad = "src/kv/pool.rs: `kv` may not use `model`";
    for source in [
        "use crate::model::Batch;",
        "fn f() { crate :: model::g() }",
        "use crate::{Error, model::{Batch, RowSampling}};",
        "use super::super::model::Batch;",
        "let x = \"//\"; use crate::model;",
        "let quote = '\"'; use crate::model; let other = '\"';",
        "/* \" */ use pagewise::model;",
    ] {
        assert_eq!(uses("src/kv/pool.rs", source), [bad], "{source}");
    }
    assert_eq!(uses("src/kv/mod.rs", "use super::model::Batch;"), ["src/kv/mod.rs: `kv` may not use `model`"]);
    assert_eq!(uses("src/new/mod.rs", ""), ["src/new/mod.rs: the module `new` is not in the table"]);
    for source in [
        "//! See [`crate::model`].\nuse super::pool; use super::{table, BLOCK_SIZE};",
        "let text = \"crate::model\"; let raw = r#\"crate::model \" \"#;",
        "use crate::{Error, Result}; use crate::kv::BlockId;",
        "mod tests { use super::super::kv; }",
    ] {
        assert_eq!(uses("src/kv/pool.rs", source), Vec::<String>::new(), "{source}");
    }
    assert_eq!(uses("src/api/mod.rs", "use crate::model::Batch;"), Vec::<String>::new());

    let words = |path, source| forbidden_words(path, &code_only(source));
    assert_eq!(words("src/kv/mod.rs", "unsafe { f() }"), ["src/kv/mod.rs: unsafe code"]);
    assert_eq!(words("src/kv/mod.rs", "use web_sys as w;"), ["src/kv/mod.rs: `web_sys` is used outside src/api"]);
    assert_eq!(words("src/model/mod.rs", "wgpu::x()"), ["src/model/mod.rs: `wgpu` is used outside src/compute"]);
    assert_eq!(words("src/compute/gpu.rs", "wgpu::x(); // unsafe"), Vec::<String>::new());
}
