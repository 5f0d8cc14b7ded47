// Reduction piece: butterfly shuffles within a subgroup. LANES is a power of two and at most the adapter's smallest
// subgroup, and a row's lanes are consecutive, so a row never spans two subgroups. Every lane gets the result.

fn reduce_sum(value: f32, lane: u32, group: u32) -> f32 {
    var total = value;
    for (var mask = 1u; mask < LANES; mask *= 2u) {
        total += subgroupShuffleXor(total, mask);
    }
    return total;
}

fn reduce_sum4(value: vec4<f32>, lane: u32, group: u32) -> vec4<f32> {
    var total = value;
    for (var mask = 1u; mask < LANES; mask *= 2u) {
        total += subgroupShuffleXor(total, mask);
    }
    return total;
}

fn reduce_max(value: f32, lane: u32, group: u32) -> f32 {
    var largest = value;
    for (var mask = 1u; mask < LANES; mask *= 2u) {
        largest = max(largest, subgroupShuffleXor(largest, mask));
    }
    return largest;
}

fn reduce_max4(value: vec4<f32>, lane: u32, group: u32) -> vec4<f32> {
    var largest = value;
    for (var mask = 1u; mask < LANES; mask *= 2u) {
        largest = max(largest, subgroupShuffleXor(largest, mask));
    }
    return largest;
}

fn reduce_min_u32(value: u32, lane: u32, group: u32) -> u32 {
    var smallest = value;
    for (var mask = 1u; mask < LANES; mask *= 2u) {
        smallest = min(smallest, subgroupShuffleXor(smallest, mask));
    }
    return smallest;
}

// The task of a workgroup, where it has one: so that compilers see that its lanes take the same way.
fn task_of(workgroup: u32, group: u32) -> u32 {
    return workgroup;
}

// The sum over the `slices` (a power of two) neighbouring lanes that share a position.
fn reduce_slices4(value: vec4<f32>, slices: u32) -> vec4<f32> {
    var total = value;
    for (var mask = 1u; mask < slices; mask *= 2u) {
        total += subgroupShuffleXor(total, mask);
    }
    return total;
}

// The sum over the lanes that are `slices` apart.
fn reduce_places4(value: vec4<f32>, slices: u32, lane: u32, group: u32) -> vec4<f32> {
    var total = value;
    for (var mask = slices; mask < LANES; mask *= 2u) {
        total += subgroupShuffleXor(total, mask);
    }
    return total;
}
