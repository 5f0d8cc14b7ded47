//! What is tried, in order, when a device computes wrongly.
#![cfg(not(target_arch = "wasm32"))]

use pagewise::compute::{AdapterKind, FewAttention, Lanes, ManyAttention, ManyRows, Reduce, Tuning};

#[test]
fn each_fallback_shares_less_and_the_last_shares_nothing() {
    let gpu = Tuning { max_tokens: 7, cuts_steps: false, ..Tuning::GPU };
    let subgroups = Tuning { row_lanes: 8, ..gpu.with_lanes(Reduce::Subgroup, 32) };
    let most = Tuning { many: ManyRows::TileF16 { rows: 64 }, one_in_bytes: true, ..subgroups };
    let f32 = Tuning { many: ManyRows::Tile { rows: 64 }, one_in_bytes: false, ..most };
    let without_subgroups = Tuning { row_lanes: 1, ..f32.with_lanes(Reduce::Workgroup, 32) };
    // The plan was made with these sizes.
    let alone = Tuning {
        max_rounds: None,
        few_attention: FewAttention::PerQuery,
        many_attention: ManyAttention::PerQuery,
        max_tokens: 7,
        cuts_steps: false,
        fused_norms: false,
        ..Tuning::SOFTWARE
    };
    let software = Tuning { max_tokens: 7, cuts_steps: false, ..Tuning::SOFTWARE };
    assert_eq!(software.fallbacks(), [software, Tuning { max_rounds: software.max_rounds, ..alone }]);
    let quads = Tuning { many: ManyRows::Quads, ..software };
    assert_eq!(quads.fallbacks()[..2], [quads, software], "without what takes subgroups");
    assert_eq!(most.fallbacks(), [most, f32, without_subgroups, alone]);
    assert_eq!(without_subgroups.fallbacks(), [without_subgroups, alone]);
    assert_eq!(alone.fallbacks(), [alone]);
    let fused = Tuning { fused_norms: true, ..alone };
    assert_eq!(fused.fallbacks(), [fused, alone]);
    // Timing may give few rows lanes of their own.
    let few = Lanes { reduce: Reduce::Subgroup, lanes: 8, workgroup: 64 };
    let timed = Tuning { matvec: few, many: ManyRows::Int8, ..gpu };
    let f32 = Tuning { many: ManyRows::Tile { rows: 64 }, ..timed };
    let shared = Tuning { matvec: Lanes { reduce: Reduce::Workgroup, ..few }, ..f32 };
    assert_eq!(timed.fallbacks(), [timed, f32, shared, alone]);
}

#[test]
fn contexts_end_where_an_adapter_stops_going_around() {
    let software = Tuning::choose(AdapterKind::Software, 8);
    let longest = software.max_context(256);
    assert!((4096..65_535).contains(&longest), "{longest} tokens of heads of 256");
    assert!(software.max_context(64) >= 4 * longest, "shorter heads, longer contexts");
    let alone = software.fallbacks()[software.fallbacks().len() - 1];
    assert_eq!(alone.max_context(256), 65_000 / 128, "a lane alone goes over each key and each value");
    assert_eq!(Tuning::GPU.max_context(256), usize::MAX);
}
