//! Answers that are being generated, and what the page is told of them.

use std::rc::Rc;

use super::engine::{WasmEngine, now_ms};
use super::events::PageEvent;
use super::logprobs::PageLogprobs;
use super::tools::ToolAnswer;
use super::trace::PageAnswer;
use crate::Error;
use crate::engine::{Event, FinishReason, RequestId, TokenLogprobs};
use crate::text::{LoggedPrompt, Prompt};

/// An answer that is being generated.
pub(super) struct Answer {
    pub(super) page: PageAnswer,
    /// Its choices have it together.
    pub(super) prompt: Rc<Prompt>,
    /// What it is cached under, if at all.
    pub(super) salt: Option<String>,
    pub(super) ids: Vec<u32>,
    /// As the model wrote it, the marks of calls included.
    pub(super) text: String,
    /// If it may have calls.
    pub(super) tools: Option<ToolAnswer>,
}

impl WasmEngine {
    /// Takes an answer that has ended out of the books, and keeps its ids for the conversation's next turn. Its prompt is
    /// only remembered if it `is_cached`: what nothing was computed for explains nothing.
    pub(super) fn end(&mut self, request: RequestId, is_cached: bool) -> Option<PageAnswer> {
        let Answer { page, prompt, salt, ids, text: answer, tools } = self.answers.remove(&request)?;
        if let Some(tools) = tools {
            self.calls.remember(tools.into_told(), answer.clone());
        }
        if let Some(text) = prompt.text.as_ref().filter(|_| !ids.is_empty()) {
            self.transcripts.remember(text, &prompt.ids, &ids);
        }
        if let Some(salt) = salt.filter(|_| is_cached) {
            let ids = [prompt.ids.as_slice(), &ids].concat();
            let prompt = Rc::unwrap_or_clone(prompt);
            self.log.remember(LoggedPrompt { salt, prompt, answer, ids });
        }
        Some(page)
    }

    /// Ends all choices of a request of the page that have not ended.
    pub(super) fn end_all(&mut self, page_id: u32) {
        let of_page = self.answers.iter().filter(|(_, answer)| answer.page.request == page_id);
        for request in of_page.map(|(&request, _)| request).collect::<Vec<_>>() {
            self.end(request, self.engine.has_started(request));
            self.engine.cancel(request);
        }
    }

    /// What an event is to the page; nothing if it is nobody's any more.
    pub(super) fn page_events(&mut self, event: Event) -> Vec<PageEvent> {
        match event {
            Event::Progress { request, progress } => {
                let page = self.answers.get(&request).map(|answer| answer.page);
                // The choices of a request wait together.
                let page = page.filter(|page| page.choice == 0);
                let event = |page: PageAnswer| PageEvent::Progress { request: page.request, progress: progress.into() };
                page.map(event).into_iter().collect()
            }
            Event::Text { request, text, ids, logprobs } => self.grow(request, text, ids, logprobs),
            Event::Finished { request, reason, usage, timings, mut cache, embedding } => {
                if let Some(Answer { prompt, salt: Some(salt), .. }) = self.answers.get(&request) {
                    self.blame_template(salt, prompt, &mut cache);
                }
                let Some(answer) = self.answers.get_mut(&request) else { return Vec::new() };
                let PageAnswer { request: page_id, choice } = answer.page;
                let mut events = answer.tools.as_mut().map_or_else(Vec::new, |tools| tools.finish(answer.page));
                let has_calls = answer.tools.as_ref().is_some_and(ToolAnswer::has_calls);
                let reason = if has_calls && reason == FinishReason::Stop { "tool_calls" } else { reason.name() };
                self.end(request, true);
                let (request, usage) = (page_id, usage.into());
                events.push(PageEvent::Finished { request, choice, reason, usage, timings, cache, embedding });
                events
            }
            Event::Failed { request, error } => {
                // What a failed step computed is dropped; what was given up late was cached by then, if it had begun.
                let has_begun = self.answers.get(&request).is_some_and(|answer| !answer.ids.is_empty());
                let is_cached = has_begun && matches!(error, Error::DeadlineExceeded { .. });
                let Some(PageAnswer { request, .. }) = self.end(request, is_cached) else { return Vec::new() };
                // The page gets all answers or none.
                self.end_all(request);
                vec![PageEvent::Failed { request, error: error.into() }]
            }
        }
    }

    /// An answer grows.
    fn grow(&mut self, id: RequestId, text: String, ids: Vec<u32>, logprobs: Vec<TokenLogprobs>) -> Vec<PageEvent> {
        let Some(answer) = self.answers.get_mut(&id) else { return Vec::new() };
        answer.ids.extend(ids);
        answer.text.push_str(&text);
        let PageAnswer { request, choice } = answer.page;
        let logprobs: Vec<_> = logprobs.into_iter().filter(|token| !token.is_end).map(PageLogprobs::from).collect();
        let Some(tools) = &mut answer.tools else {
            let is_new = !text.is_empty() || !logprobs.is_empty();
            return is_new.then_some(PageEvent::Text { request, choice, text, logprobs }).into_iter().collect();
        };
        let mut events = tools.push(&text, answer.page);
        if !logprobs.is_empty() {
            events.insert(0, PageEvent::Text { request, choice, text: String::new(), logprobs });
        }
        if tools.is_enough()
            && let Some(end) = self.engine.finish(id, now_ms())
        {
            events.extend(self.page_events(end));
        }
        events
    }
}
