//! Where the command line remembers how kernels were chosen: a small file in the user's cache folder.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The file; `None` where the system names no folder for it.
fn path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("pagewise").join("tuning.json"))
}

fn all() -> BTreeMap<String, String> {
    let text = path().and_then(|path| std::fs::read_to_string(path).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// What is remembered under a key.
pub(crate) fn recall(key: &str) -> Option<String> {
    all().remove(key)
}

/// Remembers a choice. Where that fails the next run measures again, which is no reason to fail.
pub(crate) fn remember(key: &str, choice: String) {
    let Some(path) = path() else { return };
    let mut entries = all();
    entries.insert(key.to_owned(), choice);
    let Ok(text) = serde_json::to_string_pretty(&entries) else { return };
    // Written beside and moved: another process may read it now.
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&beside, text));
    if written.and_then(|()| std::fs::rename(&beside, &path)).is_err() {
        // Nothing to clean up if it was never written.
        let _ = std::fs::remove_file(&beside);
    }
}
