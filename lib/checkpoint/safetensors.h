// Reads and writes safetensors files: an eight-byte length, a JSON header of that length, and the arrays one
// after another (github.com/huggingface/safetensors).
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
  /// The values of an F64, F32, F16 or BF16 array, as float32; nullopt for other types.
  std::optional<std::vector<float>> values;
};

struct SafetensorsFile {
  std::vector<SafetensorsArray> arrays;  ///< in header order
  std::map<std::string, std::string> metadata;

  /// Reads the whole file. Throws UserError with the path and the expected and found content if the header is
  /// invalid, larger than 100 MB or has duplicate keys, or if arrays overlap, leave gaps or do not have the
  /// size of their shape.
  static SafetensorsFile load(const std::string& path);
};

/// Returns whether a regular file starts like a safetensors file.
bool begins_as_safetensors(const std::string& path);

/// Writes the arrays (float32 or int32) in this order. The same arrays produce the same bytes. Throws Error.
void write_safetensors(NewFile& file, const std::vector<ArrayRef>& arrays,
                       const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace dtrain
