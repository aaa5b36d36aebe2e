// Element types in files, and their conversion to the types that dtrain computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace dtrain {

/// Format of a number in a file. Booleans are unsigned bytes.
struct StoredType {
  enum class Kind { unsigned_integer, signed_integer, real };
  Kind kind = Kind::unsigned_integer;
  int bytes = 1;         // 1, 2, 4 or 8 for integers; 4 or 8 for reals
  bool swapped = false;  // whether the byte order differs from that of this machine
  bool exact = false;    // whether values are decoded to float64, which keeps times and series ids distinct

  /// Returns the type to which values are decoded: float64 if `exact`; otherwise float32 for reals, uint8 for
  /// unsigned bytes, int32 for other integers.
  DType dtype() const;
  /// Returns true if decode() only copies bytes.
  bool same_bytes() const;
  /// Returns the name of the type for messages: "int64", "byte-swapped float32".
  std::string name() const;
};

/// Decodes `count` values (of any alignment) to `dst`, an array of type.dtype(). Returns the index of the
/// first value that the type of `dst` cannot hold (an integer outside int32, or a finite number outside
/// float32), or `count` if there is none.
int64_t decode(StoredType type, const void* src, void* dst, int64_t count);

}  // namespace dtrain
