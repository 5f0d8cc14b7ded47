//! Log-probabilities, in OpenAI's shape.

use serde::Serialize;

use crate::engine::{TokenLogprob, TokenLogprobs};

/// `TokenLogprob` of `js/src/openai.ts`.
#[derive(Debug, Serialize)]
pub(super) struct PageLogprobs {
    #[serde(flatten)]
    token: PageLogprob,
    top_logprobs: Vec<PageLogprob>,
}

#[derive(Debug, Serialize)]
struct PageLogprob {
    token: String,
    logprob: f32,
    bytes: Vec<u8>,
}

impl From<TokenLogprobs> for PageLogprobs {
    fn from(TokenLogprobs { token, top, .. }: TokenLogprobs) -> Self {
        Self { token: token.into(), top_logprobs: top.into_iter().map(PageLogprob::from).collect() }
    }
}

impl From<TokenLogprob> for PageLogprob {
    fn from(TokenLogprob { logprob, bytes, .. }: TokenLogprob) -> Self {
        Self { token: readable(&bytes), logprob, bytes }
    }
}

/// The text of a token; bytes that are no character are written `\xe5`, so that no two tokens look the same.
fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}
