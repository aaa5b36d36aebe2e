// Maps names from Keras (which dtrain also accepts), names from PyTorch, and common abbreviations to dtrain's
// names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dtrain {

/// Returns the common form of all spellings of a name: "nn.Conv2d", "Conv2D" and "conv_2d" become "conv2d".
std::string plain_name(std::string_view name);

/// Returns the candidate that is called `name` in Keras. `name` may be the name of a class (`Conv2D` for
/// "conv2d") or a short name (`mse`). Returns "" if there is no such candidate.
std::string_view find_keras_name(std::string_view name, std::span<const std::string> candidates);

/// The meaning of a foreign name: one of the candidates, or advice. Both are empty if the name is unknown.
struct Alias {
  std::string_view meant;   // the candidate; empty if there is advice
  std::string_view advice;  // a sentence, if no candidate has the meaning of the name
};
Alias find_alias(std::string_view word, std::span<const std::string> candidates);

}  // namespace dtrain
