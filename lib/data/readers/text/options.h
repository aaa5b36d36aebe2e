// Options of the text reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/text/token_options.h"

namespace dtrain {

struct TextReaderOptions : TokenOptions {
  std::optional<std::string> file, directory;
  std::vector<std::string> files;
  std::optional<int64_t> sequence_length, stride;  // length and stride of windows, for language models
  std::optional<int64_t> length;                   // length of a sample, for classification
  std::vector<std::string> class_names;

  /// Returns true if samples are windows of tokens for language models; the targets are the next tokens.
  /// Otherwise samples are whole texts, and the targets are classes.
  bool has_windows() const { return sequence_length.has_value(); }
};

}  // namespace dtrain
