// Piece of the three matrix kernels: what becomes of a finished sum. They declare `override EPILOGUE`: naga 30 panics
// on an override that follows one that sizes a workgroup array, so kernels declare theirs before any piece.
//
// 0: stored. 1: added to what is there (residual). 2, 3: silu(a) * b and gelu(a) * b, where a comes from the gate's
// row and b from the up-projection's. 4, 5: the same where the gate's sums are already there and a is the up-projection's.
// GELU is the tanh approximation, written as x * sigmoid so that nothing overflows.

fn sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + exp(min(-x, 80.0)));
}

fn silu(x: f32) -> f32 {
    return x * sigmoid(x);
}

fn gelu(x: f32) -> f32 {
    return x * sigmoid(1.595769 * (x + 0.044715 * x * x * x));
}

fn finish(existing: f32, a: f32, b: f32) -> f32 {
    switch EPILOGUE {
        case 1u: {
            return existing + a;
        }
        case 2u: {
            return silu(a) * b;
        }
        case 3u: {
            return gelu(a) * b;
        }
        case 4u: {
            return silu(existing) * a;
        }
        case 5u: {
            return gelu(existing) * a;
        }
        default: {
            return a;
        }
    }
}
