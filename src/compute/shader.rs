//! Composing WGSL: a header line, one kernel file, and the interchangeable pieces it names. Concatenation only, with one
//! exception: where one dispatch reads weights of two formats, the second format's piece has its names changed, because
//! every format's piece calls its function `load_chunk` and its buffer `weights`.

/// A kernel's source and the pieces it needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shader {
    /// The file stem of the kernel in `shaders/`.
    pub stem: &'static str,
    /// The kernel.
    pub source: &'static str,
    /// The quantisation format's `load_chunk`.
    pub format: Option<&'static str>,
    /// The `load_chunk` of a second format, and the binding of its weights.
    pub second: Option<(&'static str, usize)>,
    /// Further pieces from `shaders/lib/`.
    pub pieces: Vec<&'static str>,
    /// Whether a piece computes with f16.
    pub f16: bool,
    /// Whether a piece, other than how lanes add up, needs subgroups.
    pub subgroups: bool,
    /// How lanes of a workgroup add up.
    pub reduce: Option<Reduce>,
    /// Whether the kernel ends in the matrix kernels' epilogue.
    pub epilogue: bool,
    /// Numbers that WGSL does not take from an `override`: the sizes of private arrays.
    pub consts: Vec<(&'static str, u32)>,
}

impl Shader {
    /// A kernel without pieces.
    pub fn new(stem: &'static str, source: &'static str) -> Self {
        let (format, second, reduce) = (None, None, None);
        let (pieces, consts) = (Vec::new(), Vec::new());
        Self { stem, source, format, second, pieces, f16: false, subgroups: false, reduce, epilogue: false, consts }
    }

    /// Whether it runs only where the adapter has subgroups.
    pub fn needs_subgroups(&self) -> bool {
        self.subgroups || self.reduce == Some(Reduce::Subgroup)
    }

    /// The whole WGSL text. Browsers want `enable subgroups;` where naga rejects it, so `in_browser` decides that line.
    pub fn compose(&self, in_browser: bool) -> String {
        let mut text = String::new();
        if in_browser && self.needs_subgroups() {
            text.push_str("enable subgroups;\n");
        }
        if self.f16 {
            text.push_str("enable f16;\n");
        }
        for (name, value) in &self.consts {
            text.push_str(&format!("const {name}: u32 = {value}u;\n"));
        }
        text.push_str(self.source);
        text.push_str(self.format.unwrap_or_default());
        if let Some((format, binding)) = self.second {
            text.push_str(&format!("\n@group(0) @binding({binding}) var<storage, read> weights_2: array<u32>;\n\n"));
            text.push_str(&renamed(format));
        }
        self.pieces.iter().for_each(|piece| text.push_str(piece));
        if self.epilogue {
            text.push_str(include_str!("../../shaders/lib/epilogue.wgsl"));
        }
        text.push_str(self.reduce.map(Reduce::source).unwrap_or_default());
        text
    }
}

/// A format's piece with `_2` after the names of its functions, its buffer and the size of its rows.
fn renamed(piece: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let functions = piece.split("fn ").skip(1).filter_map(|rest| rest.split(|c| !is_part(c)).next());
    let names: Vec<_> = functions.chain(["weights", "ROW_WORDS"]).collect();
    let mut text = String::new();
    // Each piece of this split is a name, or what is between names, with the one character that ends it.
    for word in piece.split_inclusive(|c| !is_part(c)) {
        let name = word.trim_end_matches(|c| !is_part(c));
        text.push_str(name);
        if names.contains(&name) {
            text.push_str("_2");
        }
        text.push_str(&word[name.len()..]);
    }
    text
}

/// How the lanes that share a row add up their parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// One lane per row: nothing to add. Right where lanes run one after the other (software adapters).
    Lane,
    /// A tree in workgroup memory.
    Workgroup,
    /// Shuffles within a subgroup that is at least as wide as the lanes.
    Subgroup,
}

impl Reduce {
    /// All pieces.
    pub const ALL: [Reduce; 3] = [Reduce::Lane, Reduce::Workgroup, Reduce::Subgroup];

    /// The WGSL piece.
    pub fn source(self) -> &'static str {
        match self {
            Reduce::Lane => include_str!("../../shaders/lib/reduce_lane.wgsl"),
            Reduce::Workgroup => include_str!("../../shaders/lib/reduce_workgroup.wgsl"),
            Reduce::Subgroup => include_str!("../../shaders/lib/reduce_subgroup.wgsl"),
        }
    }
}
