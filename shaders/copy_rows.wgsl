// Copies rows of one layer's keys and values to other slots, so that a partly filled block can be reused: row `to` of both
// caches becomes row `from`. No copy reads a row that another writes.
//
// An invocation copies one word of one row, if the copy is for the layer's group. Grid: x = ceil(copies * ROW_WORDS / 64).

struct Step { num_tokens: u32, num_rows: u32, num_edits: u32, num_copies: u32 }
struct Copy { kv_group: u32, from_slot: u32, to_slot: u32 }

override ROW_WORDS: u32;
override KV_GROUP: u32;

@group(0) @binding(0) var<storage, read> copies: array<Copy>; // [copies]
@group(0) @binding(1) var<storage, read_write> k_cache: array<u32>; // [slots, ROW_WORDS]
@group(0) @binding(2) var<storage, read_write> v_cache: array<u32>; // [slots, ROW_WORDS]
@group(0) @binding(3) var<uniform> step: Step;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let index = global.x / ROW_WORDS;
    let word = global.x % ROW_WORDS;
    if (index >= step.num_copies) {
        return;
    }
    let copy = copies[index];
    if (copy.kv_group != KV_GROUP) {
        return;
    }
    let target_word = copy.to_slot * ROW_WORDS + word;
    let source_word = copy.from_slot * ROW_WORDS + word;
    k_cache[target_word] = k_cache[source_word];
    v_cache[target_word] = v_cache[source_word];
}
