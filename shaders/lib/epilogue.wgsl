// Piece of the three matrix kernels: what becomes of a finished sum. They declare `override EPILOGUE`: naga 30 panics
// on an override that follows one that sizes a workgroup array, so kernels declare theirs before any piece.
//
// 0: stored. 1: added to what is there (residual). 2, 3: silu(a) * b and gelu(a) * b, where a comes from the gate's
// row and b from the up-projection's. GELU is the tanh approximation, written as x * sigmoid so that nothing overflows.

fn sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + exp(min(-x, 80.0)));
}

fn finish(existing: f32, a: f32, b: f32) -> f32 {
    switch EPILOGUE {
        case 1u: {
            return existing + a;
        }
        case 2u: {
            return a * sigmoid(a) * b;
        }
        case 3u: {
            return a * sigmoid(1.595769 * (a + 0.044715 * a * a * a)) * b;
        }
        default: {
            return a;
        }
    }
}
