// Options of tokenization.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/schema.h"

namespace dtrain {

enum class TokenKind { bytes, words, bpe };
template <>
inline const EnumNames<TokenKind> names_of<TokenKind> = {
    {TokenKind::bytes, "bytes"}, {TokenKind::words, "words"}, {TokenKind::bpe, "bpe"}};

/// Changes to a text before it is split into words, as in Keras's TextVectorization. `lower` converts A to Z
/// to lower case, and `strip_punctuation` removes ASCII punctuation.
enum class TextStandardization { lower_and_strip_punctuation, lower, strip_punctuation, none };
template <>
inline const EnumNames<TextStandardization> names_of<TextStandardization> = {
    {TextStandardization::lower_and_strip_punctuation, "lower_and_strip_punctuation"},
    {TextStandardization::lower, "lower"},
    {TextStandardization::strip_punctuation, "strip_punctuation"},
    {TextStandardization::none, "none"}};

/// Every word vocabulary uses these ids for padding, for unknown words, and for its first word.
inline constexpr int32_t kPaddingToken = 0, kUnknownWord = 1, kFirstWord = 2;
/// Number of byte tokens. Their ids are the values of the bytes. The ids of merged tokens begin at this
/// number.
inline constexpr int64_t kByteTokens = 256;

struct TokenOptions {
  TokenKind tokens = TokenKind::bytes;
  /// Maximum number of ids. For words, this number includes the ids of padding and unknown words; for bpe, it
  /// includes the 256 bytes. Unset for TokenKind::bytes.
  std::optional<int64_t> vocabulary;
  // Standardization of words; lower_and_strip_punctuation if unset.
  std::optional<TextStandardization> standardize;

  /// Returns the number of ids that a model must accept.
  int64_t ids() const { return vocabulary.value_or(kByteTokens); }
  TextStandardization standardize_words() const {
    return standardize.value_or(TextStandardization::lower_and_strip_punctuation);
  }
};

/// Reports an error if `vocabulary` is missing, is too small or is given for bytes, and if `standardize` is
/// given for tokens that are not words.
void check_token_options(const TokenOptions& options, const ConfigNode& node, Diagnostics& diagnostics);

/// Adds the fields of TokenOptions, from which `Options` derives, and their rules.
template <class Options>
void add_token_fields(Schema<Options>& schema) {
  schema
      .optional(
          "tokens", static_cast<TokenKind Options::*>(&Options::tokens),
          "the units into which the text is divided: bytes (ids 0 to 255), words (separated by whitespace), "
          "or bpe (byte pair encoding: frequent sequences of bytes, learned from the training split)")
      .optional("vocabulary", static_cast<std::optional<int64_t> Options::*>(&Options::vocabulary),
                "maximum number of different tokens, which is required for words and bpe. For words, id 0 is "
                "padding, id 1 is any unknown word, and the next ids are the most frequent words. For bpe, "
                "ids 0 to 255 are the bytes, and the next ids are the learned sequences",
                between<std::optional<int64_t>>(1, INT32_MAX))
      .optional(
          "standardize", static_cast<std::optional<TextStandardization> Options::*>(&Options::standardize),
          "changes to the text before it is divided into words. `lower` converts letters to lower case, "
          "`strip_punctuation` removes punctuation, and `lower_and_strip_punctuation` does both. Only ASCII "
          "characters change, as in Keras's TextVectorization. Default: lower_and_strip_punctuation")
      .rule([](const Options& options, const ConfigNode& node, Diagnostics& diagnostics) {
        check_token_options(options, node, diagnostics);
      });
}

}  // namespace dtrain
