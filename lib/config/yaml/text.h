// Checks the bytes of a configuration file before parsing.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"

namespace dtrain {

constexpr size_t kMaxConfigBytes = 8u << 20;

/// An error in a text, and its location.
struct TextMistake {
  int line;
  int column;
  std::string message;
};

/// Returns "seed: 1" for "seed:1", where a key is followed by a colon without a space; else "".
std::string with_blank(std::string_view text);
/// Returns the advice that a message about such a scalar adds: "; a space is missing after the colon: 'seed:
/// 1'". Returns "" for any other scalar.
std::string advice_for_colon(const ConfigNode& node);

/// Searches the first `count` lines of the text, from the last one up, for keys without a space after their
/// colon. Returns these keys, up to the first line with other content: a parser takes their lines for one
/// scalar. Skips blank lines and comments.
std::vector<TextMistake> keys_without_blank(std::string_view text, int count);
/// Returns the position of the opening quote of the scalar at byte `at`, skipping anchors and tags; npos if
/// it is not quoted.
size_t quote_of_scalar(std::string_view text, size_t at);
/// Returns the position of the quote that closes the one at byte `first`; npos if there is none.
size_t closing_quote(std::string_view text, size_t first);

/// Returns the first error that makes `text` invalid: too large, not UTF-8, control characters, tabs as
/// indentation, or more brackets and commas than the parser can handle in bounded memory.
std::optional<TextMistake> find_text_mistake(std::string_view text);

}  // namespace dtrain
