//! Composing WGSL: a header line, one kernel file, and the interchangeable pieces it names. Concatenation only.

/// A kernel's source and the pieces it needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shader {
    /// The file stem of the kernel in `shaders/`.
    pub stem: &'static str,
    /// The kernel.
    pub source: &'static str,
    /// The quantisation format's `load_chunk`.
    pub format: Option<&'static str>,
    /// How lanes of a workgroup add up.
    pub reduce: Option<Reduce>,
    /// Whether the kernel ends in the matrix kernels' epilogue.
    pub epilogue: bool,
    /// Whether the kernel multiplies bytes.
    pub int8: bool,
    /// Numbers that WGSL does not take from an `override`: the sizes of private arrays.
    pub consts: Vec<(&'static str, u32)>,
}

impl Shader {
    /// A kernel without pieces.
    pub fn new(stem: &'static str, source: &'static str) -> Self {
        Self { stem, source, format: None, reduce: None, epilogue: false, int8: false, consts: Vec::new() }
    }

    /// The whole WGSL text. Browsers want `enable subgroups;` where naga rejects it, so `in_browser` decides that line.
    pub fn compose(&self, in_browser: bool) -> String {
        let mut text = String::new();
        if in_browser && self.reduce == Some(Reduce::Subgroup) {
            text.push_str("enable subgroups;\n");
        }
        for (name, value) in &self.consts {
            text.push_str(&format!("const {name}: u32 = {value}u;\n"));
        }
        text.push_str(self.source);
        text.push_str(self.format.unwrap_or_default());
        if self.epilogue {
            text.push_str(include_str!("../../shaders/lib/epilogue.wgsl"));
        }
        if self.int8 {
            text.push_str(include_str!("../../shaders/lib/int8.wgsl"));
        }
        text.push_str(self.reduce.map(Reduce::source).unwrap_or_default());
        text
    }
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
