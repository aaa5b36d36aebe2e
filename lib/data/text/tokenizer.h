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
  /// Returns true if texts must be UTF-8; readers check that before they call encode().
  bool needs_utf8() const { return learned_.kind == TokenKind::words; }
  /// Returns the ids of a text. For bytes and bpe, decode() returns exactly the text again.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// Returns the bytes of a token, which need not be whole characters; "" for padding of words and for an id
  /// outside [0, size()), which a model with more outputs may give.
  virtual std::string_view piece(int32_t id) const = 0;
  /// Returns the bytes between two tokens: a space between words, else nothing.
  std::string_view separator() const { return needs_utf8() ? " " : ""; }
  /// Returns the bytes of all tokens, with separators between tokens that have bytes.
  std::string decode(std::span<const int32_t> ids) const;

 protected:
  explicit Tokenizer(LearnedTokens learned) : learned_(std::move(learned)) {}

 private:
  LearnedTokens learned_;
};

/// Writes the ids of a text to a row of fixed length. Drops ids that do not fit, or fills the rest of the row
/// with kPaddingToken, which is also the id of a NUL byte for bytes and bpe.
void put_tokens(const Tokenizer& tokenizer, std::string_view text, std::span<int32_t> row);

/// Decodes tokens one by one. The results are valid UTF-8: a character whose bytes belong to several tokens
/// is returned with the last of them; bytes that are no character become U+FFFD.
class TokenStream {
 public:
  explicit TokenStream(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  /// Returns the characters that are complete with this token; may be empty.
  std::string add(int32_t id);
  /// Returns the text of the bytes that are left after the last token.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string pending_;  // bytes of a character that is not complete yet
  bool has_begun_ = false;
};

}  // namespace dtrain
