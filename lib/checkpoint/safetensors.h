// safetensors files: an eight-byte length, a header of that length in JSON, and the arrays, one after the
// other (github.com/huggingface/safetensors).
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

/// An array of such a file.
struct SafetensorsArray {
  std::string name;
  Shape shape;
  /// F64, F32, F16 and BF16 as float32; nothing for other types.
  std::optional<std::vector<float>> values;
};

struct SafetensorsFile {
  std::vector<SafetensorsArray> arrays;  ///< in the order of the header
  std::map<std::string, std::string> metadata;

  /// Reads the whole file. Throws UserError, with the path, what was expected and what was found, for a
  /// header that is no such header, is over 100 MB or names a key twice, and for arrays that overlap, leave
  /// holes, or have not the bytes that their shapes want.
  static SafetensorsFile load(const std::string& path);
};

/// Whether a regular file begins as safetensors do.
bool begins_as_safetensors(const std::string& path);

/// Writes the arrays, of float32 or int32, in this order. The same arrays give the same bytes. Throws Error.
void write_safetensors(NewFile& file, const std::vector<ArrayRef>& arrays,
                       const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace dtrain
