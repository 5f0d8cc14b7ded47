//! Why a prompt is reused no further, for the page.

use serde::Serialize;
use serde_json::Value;

use super::engine::WasmEngine;
use crate::Result;
use crate::doctor::{Explanation, explain};
use crate::engine::CacheReport;
use crate::kv::{Miss, MissReason};
use crate::text::{LoggedPrompt, Prompt};

/// Tokens shown on either side of a difference.
const NUM_SHOWN: usize = 16;

/// `CacheExplanation` of `js/src/cache-types.ts`.
#[derive(Debug, Serialize)]
pub(super) struct PageExplanation {
    prompt_tokens: usize,
    cached_tokens: usize,
    miss: Option<PageMiss>,
    doctor: Option<Explanation>,
}

/// A miss with the texts around it.
#[derive(Debug, Serialize)]
struct PageMiss {
    #[serde(flatten)]
    miss: Miss,
    before: String,
    expected_text: Option<String>,
    found_text: Option<String>,
}

impl WasmEngine {
    /// Says so where it was the template that changed, not a message: only if an earlier prompt proves it.
    pub(super) fn blame_template(&self, salt: &str, prompt: &Prompt, report: &mut CacheReport) {
        let Some(Miss { position, reason, expected: Some(expected), .. }) = &mut report.miss else { return };
        let Some(earlier) = self.log.parting(salt, &prompt.ids, *position, *expected) else { return };
        let renderer = self.renderer().with_tools(prompt.tools.as_ref());
        let render = |messages: &Value, opens: bool| renderer.render(messages, opens);
        let encode = |text: &str| self.transcripts.peek_prompt(text);
        // What cannot be rendered again proves nothing.
        if *reason == MissReason::Differs && earlier.is_template_changed(prompt, *position, render, encode) == Ok(true)
        {
            *reason = MissReason::TemplateChanged;
        }
    }

    /// What the cache would do for a prompt, with the prompt doctor's findings against the earlier one most like it.
    pub(super) fn explanation(&self, salt: &str, prompt: &Prompt, mut report: CacheReport) -> Result<PageExplanation> {
        self.blame_template(salt, prompt, &mut report);
        let is_template = report.miss.is_some_and(|miss| miss.reason == MissReason::TemplateChanged);
        let earlier = self.log.most_alike(salt, &prompt.ids);
        let findings = earlier.map(|earlier| self.diagnose(earlier, prompt, is_template)).transpose()?;
        Ok(PageExplanation {
            prompt_tokens: prompt.ids.len(),
            cached_tokens: report.read_tokens,
            miss: report.miss.map(|miss| self.page_miss(miss, salt, &prompt.ids)),
            doctor: findings,
        })
    }

    /// Compares messages with messages, else texts with texts. What the template wrote is in the texts only.
    fn diagnose(&self, earlier: &LoggedPrompt, next: &Prompt, is_template: bool) -> Result<Explanation> {
        if let (false, Some(previous), Some(next)) = (is_template, earlier.conversation(), &next.messages) {
            return explain(&previous, next);
        }
        let text = |prompt: &Prompt| prompt.text.clone().unwrap_or_else(|| self.tokenizer.decode(&prompt.ids, false));
        explain(&(text(&earlier.prompt) + &earlier.answer).into(), &text(next).into())
    }

    fn page_miss(&self, miss: Miss, salt: &str, ids: &[u32]) -> PageMiss {
        let position = miss.position.min(ids.len());
        let shown = |ids: &[u32]| self.tokenizer.decode(&ids[..ids.len().min(NUM_SHOWN)], false);
        let expected = |expected: u32| {
            let earlier = self.log.parting(salt, ids, position, expected);
            earlier.map_or_else(|| shown(&[expected]), |earlier| shown(&earlier.ids[position..]))
        };
        PageMiss {
            before: self.tokenizer.decode(&ids[position.saturating_sub(NUM_SHOWN)..position], false),
            expected_text: miss.expected.map(expected),
            found_text: miss.found.map(|_| shown(&ids[position..])),
            miss,
        }
    }
}
