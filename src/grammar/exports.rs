//! The second WebAssembly module: what the first one calls, through JavaScript.

use std::rc::Rc;

use js_sys::{Function, Uint32Array};
use wasm_bindgen::prelude::*;

use super::{Compile, Constraint, GrammarCompiler, Match, Vocabulary};

/// A compiler for one vocabulary.
#[wasm_bindgen]
pub struct WasmGrammars(GrammarCompiler);

/// An answer under a grammar.
#[wasm_bindgen]
pub struct WasmMatcher(Box<dyn Match>);

/// Errors are thrown as their texts.
fn thrown(error: impl ToString) -> JsValue {
    JsValue::from_str(&error.to_string())
}

/// A compiler. The words lie one behind the other in `bytes`, each up to its end; `encode(text)` returns the ids of a text in
/// the middle of another.
#[wasm_bindgen(js_name = createGrammars)]
pub fn create_grammars(
    bytes: &[u8],
    ends: &[u32],
    special: Vec<u32>,
    end_of_generation: Vec<u32>,
    encode: Function,
) -> Result<WasmGrammars, JsValue> {
    let starts = std::iter::once(&0).chain(ends);
    let word = |(&start, &end): (&u32, &u32)| bytes.get(start as usize..end as usize).unwrap_or_default().to_vec();
    let words = starts.zip(ends).map(word).collect();
    let encode = Rc::new(move |text: &str| {
        let ids = encode.call1(&JsValue::NULL, &JsValue::from_str(text));
        ids.map(|ids| Uint32Array::new(&ids).to_vec()).unwrap_or_default()
    });
    let vocabulary = Vocabulary { words, special, end_of_generation };
    GrammarCompiler::new(vocabulary, encode).map(WasmGrammars).map_err(thrown)
}

#[wasm_bindgen]
impl WasmGrammars {
    /// A matcher for a constraint, given as JSON.
    pub fn compile(&self, constraint: &str) -> Result<WasmMatcher, JsValue> {
        let constraint: Constraint = serde_json::from_str(constraint).map_err(thrown)?;
        self.0.compile(&constraint).map(WasmMatcher).map_err(thrown)
    }
}

#[wasm_bindgen]
impl WasmMatcher {
    /// The tokens that may come next; empty when none may.
    pub fn mask(&mut self) -> Result<Vec<u32>, JsValue> {
        self.0.mask().map_err(thrown)
    }

    /// Takes note of a token; says whether the answer is complete.
    pub fn accept(&mut self, token: u32) -> Result<bool, JsValue> {
        self.0.accept(token).map_err(thrown)
    }

    /// The tokens that must come next.
    pub fn forced(&mut self) -> Vec<u32> {
        self.0.forced()
    }

    /// Another one, at the same place.
    pub fn fork(&self) -> WasmMatcher {
        WasmMatcher(self.0.fork())
    }
}
