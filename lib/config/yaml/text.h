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

/// Inserts the missing space into a text such as "seed:1" and returns "seed: 1". Returns "" for any other
/// text.
std::string with_blank(std::string_view text);
/// Returns the advice "; a space is missing after the colon: 'seed: 1'" for an unquoted scalar such as
/// "seed:1". Returns "" for any other node.
std::string advice_for_colon(const ConfigNode& node);

/// Searches lines of the text upwards, from line number `count`, for keys without a space after the colon.
/// Stops at the first line with other content; blank lines and comments are skipped. Returns the keys that
/// were found. They are often the cause of a syntax error, because a parser joins such lines into one scalar.
std::vector<TextMistake> keys_without_blank(std::string_view text, int count);
/// Returns the position of the opening quotation mark of the scalar at byte `at`, after anchors and tags.
/// Returns npos if the scalar is not quoted.
size_t quote_of_scalar(std::string_view text, size_t at);
/// Returns the position of the quotation mark that closes the one at position `first`. Returns npos if it is
/// not closed.
size_t closing_quote(std::string_view text, size_t first);

/// Returns the first error that makes `text` invalid: too large, not UTF-8, control characters, tabs as
/// indentation, or more brackets and commas than the parser can handle in bounded memory.
std::optional<TextMistake> find_text_mistake(std::string_view text);

}  // namespace dtrain
