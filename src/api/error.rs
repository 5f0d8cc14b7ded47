//! Errors and panics, across the border.

use std::cell::RefCell;

use js_sys::{Function, Object, Reflect};
use wasm_bindgen::prelude::*;

use super::source::number;
use crate::Error;

thread_local! {
    /// Told of a panic.
    static PANIC_HANDLER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Has `handler` called with the message of a panic, after which the module is beyond use. A panic in a future leaves
/// its promise pending for ever, so this is the only sign of it that can be relied on.
#[wasm_bindgen(js_name = setPanicHandler)]
pub fn set_panic_handler(handler: Function) {
    PANIC_HANDLER.with(|slot| *slot.borrow_mut() = Some(handler));
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        let message = JsValue::from_str(&info.to_string());
        PANIC_HANDLER.with(|slot| {
            if let Ok(slot) = slot.try_borrow()
                && let Some(handler) = &*slot
            {
                // There is nobody left to tell when the handler itself throws.
                drop(handler.call1(&JsValue::NULL, &message));
            }
        });
    }));
}

impl From<Error> for JsValue {
    /// `{code, message}`, and `retryAfterMs` where it is known.
    fn from(error: Error) -> Self {
        let object = Object::new();
        // Setting a property of a fresh object cannot fail.
        let set = |key: &str, value: JsValue| drop(Reflect::set(&object, &key.into(), &value));
        set("code", error.code().into());
        set("message", error.to_string().into());
        if let Some(ms) = retry_after_ms(&error) {
            set("retryAfterMs", number(ms).into());
        }
        object.into()
    }
}

/// When to try again, if the error says it.
pub(super) fn retry_after_ms(error: &Error) -> Option<u64> {
    match error {
        Error::QueueFull { retry_after_ms, .. } => *retry_after_ms,
        _ => None,
    }
}

/// The error of a read that JavaScript failed.
pub(super) fn read_error(error: &JsValue) -> Error {
    let text = |key: &str| Reflect::get(error, &key.into()).ok().and_then(|value| value.as_string());
    let message = text("message").unwrap_or_else(|| "the model's bytes could not be read".into());
    match text("code").as_deref() {
        Some("corrupt_model") => Error::CorruptModel(message),
        Some("cancelled") => Error::Cancelled,
        _ => Error::Network(message),
    }
}
