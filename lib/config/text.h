// Checks on the bytes of a configuration file before any parser sees them.
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

/// What is wrong with a text, and where.
struct TextMistake {
  int line;
  int column;
  std::string message;
};

/// "seed: 1" of "seed:1", a key of letters whose colon has no blank behind it; "" of any other text.
std::string with_blank(std::string_view text);
/// What a message adds about such a scalar: "; a blank is missing behind the colon: 'seed: 1'"; "" of any
/// other.
std::string advice_for_colon(const ConfigNode& node);

/// The keys without a blank behind their colon in the last of the first `count` lines: a parser takes them
/// for a text that goes on.
std::vector<TextMistake> keys_without_blank(std::string_view text, int count);
/// Where the quote opens of a scalar that begins at byte `at`, anchors aside; npos where it has no quotes.
size_t quote_of_scalar(std::string_view text, size_t at);
/// Where the quote closes that opens at byte `first`; npos where none does.
size_t closing_quote(std::string_view text, size_t first);

/// The first thing that keeps `text` from being a configuration: too large, not UTF-8, control characters,
/// tabs as indentation, or more brackets and commas than the parser can take in bounded memory.
std::optional<TextMistake> find_text_mistake(std::string_view text);

}  // namespace dtrain
