// What the things of a configuration are called elsewhere: in Keras's classes, in PyTorch, in short.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dtrain {

/// A name as all spellings of it share it: "nn.Conv2d", "Conv2D" and "conv_2d" are conv2d.
std::string plain_name(std::string_view name);

/// What a word from elsewhere stands for where `candidates` are known; both are empty where that is not
/// known.
struct Alias {
  std::string_view meant;   // one of the candidates, or
  std::string_view advice;  // a sentence, where none of them is what is meant
};
Alias find_alias(std::string_view word, std::span<const std::string> candidates);

}  // namespace dtrain
