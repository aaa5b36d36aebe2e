// Checks on the bytes of a configuration file before any parser sees them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

constexpr size_t kMaxConfigBytes = 8u << 20;

/// What is wrong with a text, and where.
struct TextMistake {
  int line;
  int column;
  std::string message;
};

/// The first thing that keeps `text` from being a configuration: too large, not UTF-8, control characters,
/// tabs as indentation, or more brackets and commas than the parser can take in bounded memory.
std::optional<TextMistake> find_text_mistake(std::string_view text);

}  // namespace dtrain
