//! What is tried, in order, when a device computes wrongly.
#![cfg(not(target_arch = "wasm32"))]

use pagewise::compute::{ManyRows, Reduce, Tuning};

#[test]
fn each_fallback_shares_less_and_the_last_shares_nothing() {
    let most = Tuning {
        reduce: Reduce::Subgroup,
        many: ManyRows::TileF16 { rows: 64 },
        int8: true,
        max_tokens: 7,
        cuts_steps: false,
        ..Tuning::GPU
    };
    let f32 = Tuning { many: ManyRows::Tile { rows: 64 }, int8: false, ..most };
    let without_subgroups = Tuning { reduce: Reduce::Workgroup, ..f32 };
    // The plan was made with these sizes.
    let alone = Tuning { max_tokens: 7, cuts_steps: false, fused_norms: false, ..Tuning::SOFTWARE };
    assert_eq!(most.fallbacks(), [most, f32, without_subgroups, alone]);
    assert_eq!(without_subgroups.fallbacks(), [without_subgroups, alone]);
    assert_eq!(alone.fallbacks(), [alone]);
    let fused = Tuning { fused_norms: true, ..alone };
    assert_eq!(fused.fallbacks(), [fused, alone]);
}
