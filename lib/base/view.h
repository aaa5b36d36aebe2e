// A typed view of memory owned elsewhere.
#pragma once

#include "base/dtype.h"
#include "base/shape.h"

namespace dtrain {

/// Memory layout of an image batch. Users only see `plain`. The other layouts are used inside a plan, between
/// its layers.
enum class Layout : uint8_t {
  plain,      ///< row major in the order of the shape; for images channels last (NHWC)
  planar,     ///< NCHW
  blocked8,   ///< NCHW with the channels in blocks of 8 innermost (nChw8c)
  blocked16,  ///< like blocked8, with blocks of 16
};

/// A non-owning reference to an array: copying a View copies no elements. The shape includes the batch axis.
struct View {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::float32;
  Layout layout = Layout::plain;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return static_cast<float*>(data); }
  int64_t elements() const { return shape.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * bytes_of(dtype); }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace dtrain
