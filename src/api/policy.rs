//! What the prefix cache gives up first, as the page chooses it.

use serde::Deserialize;
use wasm_bindgen::prelude::*;

use super::engine::WasmEngine;
use super::from_js;
use crate::kv::Policy;

/// `EvictionPolicy` of `js/src/cache-types.ts`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
enum PagePolicy {
    Lru,
    TailAware { ttft_target_ms: u32, prefill_tokens_per_s: u32, next_turn_tokens: u32 },
}

impl From<PagePolicy> for Policy {
    fn from(policy: PagePolicy) -> Self {
        match policy {
            PagePolicy::Lru => Self::Lru,
            PagePolicy::TailAware { ttft_target_ms, prefill_tokens_per_s, next_turn_tokens } => {
                Self::TailAware { ttft_target_ms, prefill_tokens_per_s, next_turn_tokens }
            }
        }
    }
}

#[wasm_bindgen]
impl WasmEngine {
    /// Chooses how free blocks of equal priority are given up, from now on.
    #[wasm_bindgen(js_name = setCachePolicy)]
    pub fn set_cache_policy(&mut self, policy: JsValue) -> Result<(), JsValue> {
        self.engine.set_cache_policy(from_js::<PagePolicy>(policy, "policy")?.into());
        Ok(())
    }
}
