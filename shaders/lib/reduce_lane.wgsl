// Reduction piece for LANES = 1: every row has one lane, so there is nothing to add.

fn reduce_sum(value: f32, lane: u32, group: u32) -> f32 {
    return value;
}

fn reduce_sum4(value: vec4<f32>, lane: u32, group: u32) -> vec4<f32> {
    return value;
}

fn reduce_max(value: f32, lane: u32, group: u32) -> f32 {
    return value;
}

fn reduce_max4(value: vec4<f32>, lane: u32, group: u32) -> vec4<f32> {
    return value;
}

fn reduce_min_u32(value: u32, lane: u32, group: u32) -> u32 {
    return value;
}

// The task of a workgroup's group: groups have one each.
fn task_of(workgroup: u32, group: u32) -> u32 {
    return workgroup * GROUPS + group;
}

fn reduce_slices4(value: vec4<f32>, slices: u32) -> vec4<f32> {
    return value;
}

fn reduce_places4(value: vec4<f32>, slices: u32, lane: u32, group: u32) -> vec4<f32> {
    return value;
}
