//! The module that compiles constraints: loaded with the first request that has one, and called through JavaScript.
//!
//! It may crash: a grammar can be one that its author did not think of, and JavaScript's stack ends sooner than a program's. Its
//! memory is beyond use then, so it starts anew at once, and whatever was made before is not touched any more.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wasm_bindgen::prelude::*;

use crate::Result;
use crate::text::{Compile, Constraint, GrammarError, Match, Tokenizer};

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
    /// Starts the module anew, with empty memory.
    #[wasm_bindgen(catch, method, js_name = __wbg_reset_state)]
    fn reset(this: &GrammarModule) -> Result<(), JsValue>;

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

/// What is the module's own.
struct Module {
    exports: GrammarModule,
    /// How often it has started anew.
    life: Cell<u32>,
}

impl Module {
    /// What went wrong. The module throws texts; anything else is a crash of it, which ends the request and not the engine.
    fn problem(&self, error: &JsValue) -> GrammarError {
        if let Some(text) = error.as_string() {
            return GrammarError(text);
        }
        self.life.set(self.life.get().wrapping_add(1));
        // One that cannot start fails the next request too.
        drop(self.exports.reset());
        let message = js_sys::Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
        let why = message.unwrap_or_else(|| format!("{error:?}"));
        GrammarError(format!("the compiler of constraints failed ({why}): a smaller or a simpler constraint may do"))
    }
}

/// Something in the module, in the life of the module in which it was made.
struct Made<T> {
    module: Rc<Module>,
    life: u32,
    value: T,
}

impl<T> Made<T> {
    fn new(module: &Rc<Module>, make: impl FnOnce(&GrammarModule) -> Result<T, JsValue>) -> Result<Self, GrammarError> {
        let life = module.life.get();
        let value = make(&module.exports).map_err(|error| module.problem(&error))?;
        Ok(Self { module: Rc::clone(module), life, value })
    }

    fn is_there(&self) -> bool {
        self.life == self.module.life.get()
    }

    fn ask<U>(&self, ask: impl FnOnce(&T) -> Result<U, JsValue>) -> Result<U, GrammarError> {
        if !self.is_there() {
            return Err(GrammarError(
                "the compiler of constraints failed at another request; send this one again".into(),
            ));
        }
        ask(&self.value).map_err(|error| self.module.problem(&error))
    }
}

/// A compiler in the other module. It may call [`Tokenizer::encode_within`] while it is called.
pub(super) struct JsCompiler {
    module: Rc<Module>,
    tokenizer: Rc<Tokenizer>,
    grammars: RefCell<Made<JsGrammars>>,
    encode: Closure<dyn Fn(String) -> Vec<u32>>,
}

impl JsCompiler {
    /// Hands the vocabulary over.
    pub(super) fn new(exports: GrammarModule, tokenizer: &Rc<Tokenizer>) -> Result<Self> {
        let module = Rc::new(Module { exports, life: Cell::new(0) });
        let own = Rc::clone(tokenizer);
        let encode = Closure::new(move |text: String| own.encode_within(&text).unwrap_or_default());
        let grammars = RefCell::new(create(&module, tokenizer, &encode)?);
        Ok(Self { module, tokenizer: Rc::clone(tokenizer), grammars, encode })
    }
}

/// A compiler of the vocabulary.
fn create(
    module: &Rc<Module>,
    tokenizer: &Tokenizer,
    encode: &Closure<dyn Fn(String) -> Vec<u32>>,
) -> Result<Made<JsGrammars>, GrammarError> {
    let ids = || (0..).take(tokenizer.vocab_size());
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for id in ids() {
        bytes.extend(tokenizer.token_bytes(id).unwrap_or_default());
        ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    }
    let special = ids().filter(|&id| tokenizer.is_special(id)).collect();
    let end_of_generation = tokenizer.end_of_generation().to_vec();
    Made::new(module, |exports| exports.create_grammars(&bytes, &ends, special, end_of_generation, encode.as_ref()))
}

impl Compile for JsCompiler {
    fn compile(&self, constraint: &Constraint) -> Result<Box<dyn Match>, GrammarError> {
        let json = serde_json::to_string(constraint).map_err(|error| GrammarError(error.to_string()))?;
        if !self.grammars.borrow().is_there() {
            let anew = create(&self.module, &self.tokenizer, &self.encode)?;
            self.grammars.replace(anew);
        }
        let grammars = self.grammars.borrow();
        let value = grammars.ask(|grammars| grammars.compile(&json))?;
        Ok(Box::new(JsGuide(Ok(Made { module: Rc::clone(&self.module), life: grammars.life, value }))))
    }
}

impl Drop for JsCompiler {
    fn drop(&mut self) {
        // After a crash there is nothing to free.
        drop(self.grammars.borrow().ask(JsGrammars::free));
    }
}

/// A matcher in the other module, or why there is none.
struct JsGuide(Result<Made<JsMatcher>, GrammarError>);

impl JsGuide {
    fn ask<T>(&self, ask: impl FnOnce(&JsMatcher) -> Result<T, JsValue>) -> Result<T, GrammarError> {
        self.0.as_ref().map_err(Clone::clone)?.ask(ask)
    }

    fn copy(&self) -> Result<Made<JsMatcher>, GrammarError> {
        let made = self.0.as_ref().map_err(Clone::clone)?;
        let value = made.ask(JsMatcher::fork)?;
        Ok(Made { module: Rc::clone(&made.module), life: made.life, value })
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
        Box::new(Self(self.copy()))
    }
}

impl Drop for JsGuide {
    fn drop(&mut self) {
        drop(self.ask(JsMatcher::free_matcher));
    }
}
