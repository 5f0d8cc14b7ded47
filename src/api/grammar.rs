//! The module that compiles constraints: loaded with the first request that has one, and called through JavaScript.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use crate::text::{Compile, Constraint, GrammarError, Match, Tokenizer};
use crate::{Error, Result};

#[wasm_bindgen]
extern "C" {
    /// What the worker has loaded: the exports of `src/grammar`.
    pub type GrammarModule;
    #[wasm_bindgen(catch, method, js_name = createGrammars)]
    fn create_grammars(
        this: &GrammarModule,
        bytes: &[u8],
        ends: &[u32],
        special: Vec<u32>,
        end_of_generation: Vec<u32>,
        encode: &JsValue,
    ) -> Result<JsGrammars, JsValue>;

    type JsGrammars;
    #[wasm_bindgen(catch, method)]
    fn compile(this: &JsGrammars, constraint: &str) -> Result<JsMatcher, JsValue>;
    #[wasm_bindgen(catch, method)]
    fn free(this: &JsGrammars) -> Result<(), JsValue>;

    type JsMatcher;
    #[wasm_bindgen(catch, method)]
    fn mask(this: &JsMatcher) -> Result<Vec<u32>, JsValue>;
    #[wasm_bindgen(catch, method)]
    fn accept(this: &JsMatcher, token: u32) -> Result<bool, JsValue>;
    #[wasm_bindgen(catch, method)]
    fn forced(this: &JsMatcher) -> Result<Vec<u32>, JsValue>;
    #[wasm_bindgen(catch, method)]
    fn fork(this: &JsMatcher) -> Result<JsMatcher, JsValue>;
    #[wasm_bindgen(catch, method, js_name = free)]
    fn free_matcher(this: &JsMatcher) -> Result<(), JsValue>;
}

/// A compiler in the other module. It may call [`Tokenizer::encode_within`] while it is called.
pub(super) struct JsCompiler {
    grammars: JsGrammars,
    _encode: Closure<dyn Fn(String) -> Vec<u32>>,
}

impl JsCompiler {
    /// Hands the vocabulary over.
    pub(super) fn new(module: &GrammarModule, tokenizer: &Rc<Tokenizer>) -> Result<Self> {
        let ids = || (0..).take(tokenizer.vocab_size());
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for id in ids() {
            bytes.extend(tokenizer.token_bytes(id).unwrap_or_default());
            ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
        let special = ids().filter(|&id| tokenizer.is_special(id)).collect();
        let end_of_generation = tokenizer.end_of_generation().to_vec();
        let own = Rc::clone(tokenizer);
        let encode = Closure::new(move |text: String| own.encode_within(&text).unwrap_or_default());
        let created = module.create_grammars(&bytes, &ends, special, end_of_generation, encode.as_ref());
        Ok(Self { grammars: created.map_err(|error| Error::from(problem(&error)))?, _encode: encode })
    }
}

impl Compile for JsCompiler {
    fn compile(&self, constraint: &Constraint) -> Result<Box<dyn Match>, GrammarError> {
        let json = serde_json::to_string(constraint).map_err(|error| GrammarError(error.to_string()))?;
        let matcher = self.grammars.compile(&json).map_err(|error| problem(&error))?;
        Ok(Box::new(JsGuide(Ok(matcher))))
    }
}

impl Drop for JsCompiler {
    fn drop(&mut self) {
        // A module that has crashed has nothing to free.
        drop(self.grammars.free());
    }
}

/// A matcher in the other module, or why there is none.
struct JsGuide(Result<JsMatcher, GrammarError>);

impl JsGuide {
    fn ask<T>(&self, ask: impl FnOnce(&JsMatcher) -> Result<T, JsValue>) -> Result<T, GrammarError> {
        ask(self.0.as_ref().map_err(Clone::clone)?).map_err(|error| problem(&error))
    }
}

impl Match for JsGuide {
    fn mask(&mut self) -> Result<Vec<u32>, GrammarError> {
        self.ask(JsMatcher::mask)
    }

    fn accept(&mut self, token: u32) -> Result<bool, GrammarError> {
        self.ask(|matcher| matcher.accept(token))
    }

    fn forced(&mut self) -> Vec<u32> {
        // What went wrong shows with the mask.
        self.ask(JsMatcher::forced).unwrap_or_default()
    }

    fn fork(&self) -> Box<dyn Match> {
        Box::new(Self(self.ask(JsMatcher::fork)))
    }
}

impl Drop for JsGuide {
    fn drop(&mut self) {
        drop(self.ask(JsMatcher::free_matcher));
    }
}

/// What the module throws: texts. Anything else is a crash of it, which ends the request and not the engine.
fn problem(error: &JsValue) -> GrammarError {
    GrammarError(error.as_string().unwrap_or_else(|| format!("the compiler of constraints failed: {error:?}")))
}
