// Element types of files, and their conversion to the types that dtrain computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace dtrain {

/// Describes a number as a file holds it. Booleans are unsigned bytes.
struct StoredType {
  enum class Kind { unsigned_integer, signed_integer, real };
  Kind kind = Kind::unsigned_integer;
  int bytes = 1;         // 1, 2, 4 or 8; a real has 4 or 8
  bool swapped = false;  // whether the byte order is not this machine's

  /// The type to which values are decoded: float32 for reals, uint8 for unsigned bytes, int32 for other
  /// integers.
  DType dtype() const;
  /// Whether decoding is a plain copy.
  bool same_bytes() const;
  /// The type as messages call it: "int64", "big-endian float32".
  std::string name() const;
};

/// Decodes `count` values (at any alignment) to `dst`, an array of type.dtype(). Returns the index of the
/// first value that does not fit (an integer an int32, a finite number a float32), or `count`.
int64_t decode(StoredType type, const void* src, void* dst, int64_t count);

}  // namespace dtrain
