//! What a constraint may cost. Whoever asks for more gets an error, before or while it is computed.

use llguidance::api::ParserLimits;

/// Bytes of a schema, an expression or a grammar.
pub(super) const MAX_BYTES: usize = 256 << 10;
/// Schemas within each other, `$ref`s followed: each level takes stack.
pub(super) const MAX_DEPTH: usize = 64;
/// Schemas within a schema.
pub(super) const MAX_SCHEMAS: usize = 10_000;
/// Properties of a schema: each takes stack, of which a browser's worker has little. Of optional ones it is `parser_limits` that
/// allows about 500.
pub(super) const MAX_PROPERTIES: usize = 1000;
/// Brackets within each other in a grammar or an expression: each level takes stack.
pub(super) const MAX_NESTING: usize = 64;
/// Items, properties and characters that a schema may count.
pub(super) const MAX_COUNT: u64 = 100_000;
/// The longest token that can be drawn, in bytes; the trie has room for little more.
pub(super) const MAX_TOKEN_BYTES: usize = 1000;
/// Bytes of all tokens together, which the trie's numbers hold.
pub(super) const MAX_VOCABULARY_BYTES: usize = 4 << 20;

/// What compiling and each step may take. States are kept, 1 to 2 kB each.
pub(super) fn parser_limits() -> ParserLimits {
    ParserLimits {
        max_lexer_states: 30_000,
        max_grammar_size: 200_000,
        verbose_errors: false,
        ..ParserLimits::default()
    }
}
