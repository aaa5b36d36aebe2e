// The extents of an array, outermost first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dtrain {

/// What one array may hold: many kernels of oneDNN and cuDNN count in 32 bits.
inline constexpr int64_t kMostArrayElements = INT32_MAX;

/// A small value type. Layer shapes leave out the batch axis; an empty shape is a scalar (one element).
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

  /// The product of the extents; 1 for a scalar. Throws Error where 64 bits do not hold it.
  int64_t elements() const;
  /// Elements along the last axis: 1 for a scalar.
  int64_t columns() const { return extents_.empty() ? 1 : extents_.back(); }
  /// elements() / columns(), the number of rows; 0 where columns() is 0.
  int64_t positions() const { return columns() == 0 ? 0 : elements() / columns(); }
  /// Whether the product is more than `most`, however large the extents are.
  bool exceeds(int64_t most) const;
  /// This shape with `extent` put before it, as [batch, ...] from a sample's shape.
  Shape prepended(int64_t extent) const;
  /// "28x28x1"; "scalar" for a rank of 0.
  std::string str() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> extents_;
};

}  // namespace dtrain
