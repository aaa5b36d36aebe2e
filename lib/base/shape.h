// The extents of an array, outermost first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dtrain {

/// Maximum number of elements of one array: many oneDNN and cuDNN kernels use 32-bit indices.
inline constexpr int64_t kMostArrayElements = INT32_MAX;

/// The extents of an array. Layers' shapes exclude the batch axis; an empty shape is a scalar (one element).
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : extents_(extents) {}
  explicit Shape(std::vector<int64_t> extents) : extents_(std::move(extents)) {}

  size_t rank() const { return extents_.size(); }
  int64_t operator[](size_t axis) const { return extents_[axis]; }
  int64_t& operator[](size_t axis) { return extents_[axis]; }
  int64_t back() const { return extents_.back(); }
  const std::vector<int64_t>& extents() const { return extents_; }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }

  /// Returns the product of the extents; 1 for a scalar. Throws Error if it does not fit in 64 bits.
  int64_t elements() const;
  /// Returns the extent of the last axis; 1 for a scalar.
  int64_t columns() const { return extents_.empty() ? 1 : extents_.back(); }
  /// Returns the number of rows: elements() / columns(), or 0 if columns() is 0.
  int64_t positions() const { return columns() == 0 ? 0 : elements() / columns(); }
  /// Returns true if the number of elements exceeds `most`. The number may be too large for 64 bits.
  bool exceeds(int64_t most) const;
  /// Returns this shape with `extent` prepended, e.g. [batch, ...] from a sample's shape.
  Shape prepended(int64_t extent) const;
  /// Returns e.g. "28x28x1", or "scalar" for rank 0.
  std::string str() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> extents_;
};

}  // namespace dtrain
