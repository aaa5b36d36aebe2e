// What the things of a configuration are called elsewhere: in Keras, whose names are taken, in PyTorch, in
// short.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dtrain {

/// The form that all spellings of a name share: "nn.Conv2d", "Conv2D" and "conv_2d" become "conv2d".
std::string plain_name(std::string_view name);

/// The candidate that Keras calls `name`: a class (`Conv2D` of "conv2d") or a short name (`mse`). "" where
/// there is none.
std::string_view find_keras_name(std::string_view name, std::span<const std::string> candidates);

/// What a word from elsewhere stands for: one of the candidates, or advice. Both are empty where the word is
/// not known.
struct Alias {
  std::string_view meant;   // one of the candidates
  std::string_view advice;  // a sentence, where none of them is what is meant
};
Alias find_alias(std::string_view word, std::span<const std::string> candidates);

}  // namespace dtrain
