// Reads and writes safetensors files. Such a file consists of an eight-byte length, a JSON header of this
// length, and the data of all arrays (github.com/huggingface/safetensors).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/new_file.h"
#include "checkpoint/checkpoint.h"

namespace dtrain {

/// An array of a safetensors file.
struct SafetensorsArray {
  std::string name;
  Shape shape;
  /// The values as float32, if the type is F64, F32, F16 or BF16; nullopt for other types.
  std::optional<std::vector<float>> values;
  std::string other = {};  ///< the type and the bytes, if `values` is not set
};

struct SafetensorsFile {
  std::vector<SafetensorsArray> arrays;  ///< in header order
  std::map<std::string, std::string> metadata;

  /// Reads the whole file. Throws UserError if the header is invalid, is larger than 100 MB or has duplicate
  /// keys, or if arrays overlap, have gaps between them or have sizes that do not match their shapes. The
  /// error contains the path, the expected content and the content found.
  static SafetensorsFile load(const std::string& path);
};

/// Returns true if a regular file begins like a safetensors file.
bool begins_as_safetensors(const std::string& path);

/// Writes float32 or int32 arrays in the given order. The same arrays always produce the same bytes. Throws
/// Error if the file cannot be written.
void write_safetensors(NewFile& file, const std::vector<ArrayRef>& arrays,
                       const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace dtrain
