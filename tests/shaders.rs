//! Every shader that a recording can ask for: valid WGSL, within WebGPU's default limits, and declaring what its Rust
//! side says. No GPU is needed.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/kernel_cases.rs"]
mod kernel_cases;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use kernel_cases::TUNINGS;
use naga::back::pipeline_constants::process_overrides;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage, StorageAccess};
use pagewise::compute::{Access, Reduce, Shader};
use pagewise::quant::Format;

/// WebGPU's default limits, which every device has.
const MAX_STORAGE_BUFFERS: usize = 8;
const MAX_INVOCATIONS: u32 = 256;
const MAX_WORKGROUP_BYTES: u32 = 16 * 1024;

/// A shader as one dispatch wants it.
struct Variant {
    name: String,
    shader: Shader,
    access: &'static [Access],
    constants: Vec<(&'static str, f64)>,
}

/// Every distinct pipeline of the kernels' cases.
fn variants() -> Vec<Variant> {
    let mut found = BTreeMap::new();
    for tuning in TUNINGS {
        for case in kernel_cases::all(&tuning) {
            for dispatch in case.recording().dispatches() {
                let (shader, constants) = (dispatch.kernel.shader(), dispatch.kernel.constants());
                let key = (shader.compose(true), format!("{constants:?}"));
                found.entry(key).or_insert_with(|| Variant {
                    name: format!("{:?}", dispatch.kernel),
                    access: dispatch.kernel.access(),
                    shader,
                    constants,
                });
            }
        }
    }
    found.into_values().collect()
}

fn parse(variant: &Variant) -> (Module, ModuleInfo) {
    let source = variant.shader.compose(false);
    let module = naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|error| panic!("{}: {}", variant.name, error.emit_to_string(&source)));
    let info = validator(variant)
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}: {}", variant.name, error.emit_to_string(&source)));
    (module, info)
}

/// Packing halves is in WebGPU's core, though naga counts it as a capability.
const HALVES: Capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;

/// Only subgroups and f16 are optional, and only where they are asked for.
fn validator(variant: &Variant) -> Validator {
    let mut capabilities = HALVES;
    capabilities.set(Capabilities::SUBGROUP, variant.shader.needs_subgroups());
    capabilities.set(Capabilities::SHADER_FLOAT16, variant.shader.f16);
    Validator::new(ValidationFlags::all(), capabilities)
}

#[test]
fn the_cases_cover_every_kernel_and_piece() {
    let variants = variants();
    let used: BTreeSet<_> = variants.iter().map(|v| format!("{}.wgsl", v.shader.stem)).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/shaders");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<_> = names.filter(|name| name.ends_with(".wgsl")).collect();
    assert_eq!(used, files, "kernels in the cases, files in shaders/");
    let formats_of = |stem| {
        let pieces = variants.iter().filter(|v| v.shader.stem == stem).filter_map(|v| v.shader.format);
        pieces.collect::<BTreeSet<_>>()
    };
    for stem in ["matvec", "matmul", "matmul_few", "matmul_tile", "embed"] {
        assert_eq!(formats_of(stem).len(), Format::ALL.len(), "formats of {stem}");
    }
    let packable = Format::ALL.into_iter().filter(|format| format.wgsl().contains("fn load_packed("));
    assert_eq!(formats_of("matmul_int8"), packable.map(Format::wgsl).collect(), "formats of matmul_int8");
    for stem in ["matvec", "matmul_few", "rms_norm", "rms_norm_add", "rope_store", "attention", "attend_split"] {
        for reduce in Reduce::ALL {
            let is_there = variants.iter().any(|v| v.shader.stem == stem && v.shader.reduce == Some(reduce));
            assert!(is_there, "{stem} with {reduce:?}");
        }
    }
}

/// What a variant takes when its numbers are filled in.
struct Use {
    invocations: u32,
    workgroup_bytes: u32,
}

fn used(variant: &Variant) -> Use {
    let (module, info) = parse(variant);
    let constants = variant.constants.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let (module, _) = process_overrides(&module, &info, Some((ShaderStage::Compute, "main")), &constants)
        .unwrap_or_else(|error| panic!("{}: {error}", variant.name));
    validator(variant).validate(&module).unwrap_or_else(|error| panic!("{}: {error:?}", variant.name));
    let shared = module.global_variables.iter().filter(|(_, variable)| variable.space == AddressSpace::WorkGroup);
    Use {
        invocations: module.entry_points[0].workgroup_size.iter().product(),
        // A binding's alignment at most is lost between two variables.
        workgroup_bytes: shared
            .map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()).next_multiple_of(16))
            .sum(),
    }
}

#[test]
fn naga_accepts_every_variant_within_the_default_limits() {
    for variant in variants() {
        let Use { invocations, workgroup_bytes } = used(&variant);
        assert!(invocations <= MAX_INVOCATIONS, "{}: {invocations} invocations", variant.name);
        assert!(workgroup_bytes <= MAX_WORKGROUP_BYTES, "{}: {workgroup_bytes} bytes shared", variant.name);
        assert!(variant.access.len() <= MAX_STORAGE_BUFFERS, "{}: too many storage buffers", variant.name);
    }
}

/// The cells of the table of variants in docs/kernels.md, a line a kernel.
fn cells() -> Vec<[String; 6]> {
    let mut kernels = BTreeMap::<&str, Vec<Variant>>::new();
    for variant in variants() {
        kernels.entry(variant.shader.stem).or_default().push(variant);
    }
    let head = ["kernel", "formats", "lanes add up", "storage buffers", "invocations", "workgroup memory, bytes"];
    let mut lines = vec![head.map(str::to_owned)];
    for (stem, variants) in kernels {
        let formats: BTreeSet<_> = variants.iter().filter_map(|variant| variant.shader.format).collect();
        let of = |reduce| match reduce {
            Reduce::Lane => "alone",
            Reduce::Workgroup => "by tree",
            Reduce::Subgroup => "by subgroup",
        };
        let is_used = |&reduce: &Reduce| variants.iter().any(|variant| variant.shader.reduce == Some(reduce));
        let reduces: Vec<_> = Reduce::ALL.into_iter().filter(is_used).map(of).collect();
        let span = |values: Vec<usize>| match (values.iter().min().unwrap(), values.iter().max().unwrap()) {
            (least, most) if least == most => most.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        let uses: Vec<_> = variants.iter().map(used).collect();
        lines.push([
            format!("`{stem}`"),
            if formats.is_empty() { String::new() } else { formats.len().to_string() },
            reduces.join(", "),
            span(variants.iter().map(|variant| variant.access.len()).collect()),
            span(uses.iter().map(|found| found.invocations as usize).collect()),
            span(uses.iter().map(|found| found.workgroup_bytes as usize).collect()),
        ]);
    }
    lines
}

/// The cells as Markdown, in columns.
fn table() -> String {
    let lines = cells();
    let widths: [usize; 6] = std::array::from_fn(|column| lines.iter().map(|line| line[column].len()).max().unwrap());
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let padded: Vec<_> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += &format!("| {} |\n", padded.join(" | "));
        if number == 0 {
            text += &format!("| {} |\n", widths.map(|width| "-".repeat(width)).join(" | "));
        }
    }
    text
}

/// `PAGEWISE_WRITE_DOCS=1 cargo test --test shaders` brings the table up to date.
#[test]
fn the_table_of_variants_in_the_docs_is_that_of_the_cases() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kernels.md");
    const BEGIN: &str = "<!-- the variants, by tests/shaders.rs -->\n";
    const END: &str = "<!-- end of the variants -->\n";
    let docs = std::fs::read_to_string(PATH).unwrap();
    let (before, rest) = docs.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let table = table();
    if std::env::var("PAGEWISE_WRITE_DOCS").is_ok_and(|value| value == "1") {
        std::fs::write(PATH, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "PAGEWISE_WRITE_DOCS=1 cargo test --test shaders writes it");
    }
}

/// A variable of a loop without a value begins each round as the round before left it in Chromium 156, though WGSL says zero.
#[test]
fn every_variable_of_a_function_begins_with_a_value() {
    for variant in variants() {
        let source = variant.shader.compose(true);
        let is_bare =
            |line: &&str| line.starts_with(' ') && line.trim_start().starts_with("var ") && !line.contains('=');
        assert_eq!(source.lines().find(is_bare), None, "{}", variant.name);
    }
}

#[test]
fn bindings_are_those_of_the_rust_side() {
    for variant in variants() {
        let (module, _) = parse(&variant);
        let mut bindings: Vec<_> = module
            .global_variables
            .iter()
            .filter_map(|(_, variable)| variable.binding.map(|b| ((b.group, b.binding), variable.space)))
            .collect();
        bindings.sort_by_key(|&(at, _)| at);
        let mut expected: Vec<_> =
            variant.access.iter().map(|&access| AddressSpace::Storage { access: storage(access) }).collect();
        // A kernel whose grid says it all does without the step's sizes.
        if bindings.last().is_some_and(|(_, space)| *space == AddressSpace::Uniform) {
            expected.push(AddressSpace::Uniform);
        }
        let expected: Vec<_> = (0..).map(|binding| (0, binding)).zip(expected).collect();
        assert_eq!(bindings, expected, "{}", variant.name);
    }
}

fn storage(access: Access) -> StorageAccess {
    match access {
        Access::Read => StorageAccess::LOAD,
        Access::ReadWrite => StorageAccess::LOAD | StorageAccess::STORE,
    }
}

#[test]
fn overrides_are_the_constants_of_the_rust_side() {
    for variant in variants() {
        let (module, _) = parse(&variant);
        let declared: BTreeSet<_> = module.overrides.iter().filter_map(|(_, o)| o.name.as_deref()).collect();
        let given: BTreeSet<_> = variant.constants.iter().map(|&(name, _)| name).collect();
        assert_eq!(given.len(), variant.constants.len(), "{}: a constant is given twice", variant.name);
        assert_eq!(given, declared, "{}: given, declared", variant.name);
        assert!(module.overrides.iter().all(|(_, o)| o.id.is_none()), "{}: overrides go by name", variant.name);
    }
}

/// Chromium's compiler, where its command-line tool is installed; the tests in Chromium need no tool.
#[test]
fn tint_accepts_every_variant() {
    for variant in variants() {
        let source = variant.shader.compose(true);
        let overrides: Vec<_> = variant.constants.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let child = Command::new("tint")
            .args(["--input-format", "wgsl", "--format", "wgsl", "--overrides", &overrides.join(","), "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { return };
        child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}: {}", variant.name, String::from_utf8_lossy(&output.stderr));
    }
}
