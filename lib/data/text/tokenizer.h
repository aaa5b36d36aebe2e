// Tokenizers, which convert text to ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/learned_tokens.h"

namespace dtrain {

/// Converts text to ids and back with one vocabulary. Immutable, so any thread may call it.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Returns the vocabulary, as checkpoints store it.
  const LearnedTokens& learned() const { return learned_; }
  /// Returns the number of ids: all ids are in [0, size()).
  int64_t size() const { return learned_.size(); }
  /// Returns true if texts must be UTF-8. Readers check this condition before they call encode().
  bool needs_utf8() const { return learned_.kind == TokenKind::words; }
  /// Returns the ids of a text. For bytes and bpe, decode() converts these ids back to exactly the same text.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// Returns the bytes of a token, which may be only a part of a character. Returns "" for the padding of
  /// words. Also returns "" for ids outside [0, size()), because a model may have more outputs than the
  /// vocabulary has ids.
  virtual std::string_view piece(int32_t id) const = 0;
  /// Returns the bytes between two tokens: a space between words, else nothing.
  std::string_view separator() const { return needs_utf8() ? " " : ""; }
  /// Returns the bytes of all tokens, joined with separator(). Tokens without bytes are skipped.
  std::string decode(std::span<const int32_t> ids) const;

 protected:
  explicit Tokenizer(LearnedTokens learned) : learned_(std::move(learned)) {}

 private:
  LearnedTokens learned_;
};

/// Writes the ids of a text to a row of fixed length. If the text has too many ids, the last ids are dropped.
/// If it has too few, the rest of the row is filled with kPaddingToken (for bytes and bpe, this is also the
/// id of a NUL byte).
void put_tokens(const Tokenizer& tokenizer, std::string_view text, std::span<int32_t> row);

/// Decodes tokens one by one. All returned texts are valid UTF-8. If the bytes of a character belong to
/// several tokens, the character is returned with the last of these tokens. Bytes that do not belong to a
/// character become U+FFFD.
class TokenStream {
 public:
  explicit TokenStream(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  /// Returns the characters that this token completes, or "" if it completes none.
  std::string add(int32_t id);
  /// Returns the remaining bytes after the last token, as text.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string pending_;  // bytes of a character that is not complete yet
  bool has_begun_ = false;
};

}  // namespace dtrain
