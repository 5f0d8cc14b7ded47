// Reduction piece: a tree in workgroup memory over the LANES (a power of two) of each of the workgroup's GROUPS rows.
// All invocations of the workgroup must call together; every lane of a group gets the result.

var<workgroup> tree: array<f32, LANES * GROUPS>;
var<workgroup> tree4: array<vec4<f32>, LANES * GROUPS>;
var<workgroup> tree_u32: array<u32, LANES * GROUPS>;

fn reduce_sum(value: f32, lane: u32, group: u32) -> f32 {
    let base = group * LANES;
    workgroupBarrier();
    tree[base + lane] = value;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            tree[base + lane] += tree[base + lane + width];
        }
    }
    workgroupBarrier();
    return tree[base];
}

fn reduce_sum4(value: vec4<f32>, lane: u32, group: u32) -> vec4<f32> {
    let base = group * LANES;
    workgroupBarrier();
    tree4[base + lane] = value;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            tree4[base + lane] += tree4[base + lane + width];
        }
    }
    workgroupBarrier();
    return tree4[base];
}

fn reduce_max(value: f32, lane: u32, group: u32) -> f32 {
    let base = group * LANES;
    workgroupBarrier();
    tree[base + lane] = value;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            tree[base + lane] = max(tree[base + lane], tree[base + lane + width]);
        }
    }
    workgroupBarrier();
    return tree[base];
}

fn reduce_max4(value: vec4<f32>, lane: u32, group: u32) -> vec4<f32> {
    let base = group * LANES;
    workgroupBarrier();
    tree4[base + lane] = value;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            tree4[base + lane] = max(tree4[base + lane], tree4[base + lane + width]);
        }
    }
    workgroupBarrier();
    return tree4[base];
}

fn reduce_min_u32(value: u32, lane: u32, group: u32) -> u32 {
    let base = group * LANES;
    workgroupBarrier();
    tree_u32[base + lane] = value;
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            tree_u32[base + lane] = min(tree_u32[base + lane], tree_u32[base + lane + width]);
        }
    }
    workgroupBarrier();
    return tree_u32[base];
}

// The task of a workgroup, where it has one: so that compilers see that its lanes take the same way.
fn task_of(workgroup: u32, group: u32) -> u32 {
    return workgroup;
}

// Here `slices` is 1: a tree for each score would cost more than neighbours reading neighbouring words saves.
fn reduce_slices4(value: vec4<f32>, slices: u32) -> vec4<f32> {
    return value;
}

fn reduce_places4(value: vec4<f32>, slices: u32, lane: u32, group: u32) -> vec4<f32> {
    return reduce_sum4(value, lane, group);
}
