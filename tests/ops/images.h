// Image batches in the layouts that operations ask for.
#pragma once

#include "ops/fixture.h"

namespace dtrain::test {

/// Where element (n, y, x, c) of an image batch lies.
inline size_t place(const Shape& shape, Layout layout, int64_t n, int64_t y, int64_t x, int64_t c) {
  const int64_t height = shape[1], width = shape[2], channels = shape[3];
  const int64_t block = layout == Layout::blocked16 ? 16 : layout == Layout::blocked8 ? 8 : 1;
  if (layout == Layout::plain) return static_cast<size_t>(((n * height + y) * width + x) * channels + c);
  return static_cast<size_t>((((n * (channels / block) + c / block) * height + y) * width + x) * block +
                             c % block);
}

/// The same images in another layout, by the operation under test where the two differ.
inline Floats laid_out(cpu::CpuOps& ops, const Floats& src, const Shape& shape, Layout from, Layout to) {
  if (from == to) return src;
  Floats dst(src.size());
  ops.reorder(shape, from, to)->run(src.data(), dst.data());
  return dst;
}

}  // namespace dtrain::test
