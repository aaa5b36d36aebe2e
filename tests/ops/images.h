// Image batches in the layouts that operations use.
#pragma once

#include "ops/fixture.h"

namespace dtrain::test {

/// Returns the index of element (n, y, x, c) of an image batch.
inline size_t place(const Shape& shape, Layout layout, int64_t n, int64_t y, int64_t x, int64_t c) {
  const int64_t height = shape[1], width = shape[2], channels = shape[3];
  const int64_t block = layout == Layout::blocked16 ? 16 : layout == Layout::blocked8 ? 8 : 1;
  if (layout == Layout::plain) return static_cast<size_t>(((n * height + y) * width + x) * channels + c);
  return static_cast<size_t>((((n * (channels / block) + c / block) * height + y) * width + x) * block +
                             c % block);
}

/// Returns plain images converted to layout `to` in the device's memory, using the operation under test.
inline TypedArray laid_out(const Device& device, const Floats& images, const Shape& shape, Layout to) {
  TypedArray plain = device.typed(images);
  if (to == Layout::plain) return plain;
  TypedArray laid = device.typed(images.size());
  device.ops().reorder(shape, Layout::plain, to)->run(plain.data(), laid.data());
  return laid;
}
inline Floats plain(const Device& device, const TypedArray& laid, const Shape& shape, Layout from) {
  if (from == Layout::plain) return laid.read();
  const TypedArray images = device.typed(static_cast<size_t>(shape.elements()));
  device.ops().reorder(shape, from, Layout::plain)->run(laid.data(), images.data());
  return images.read();
}

/// Returns the layouts that the device has for images with this number of channels.
inline std::vector<Layout> layouts_of(const Device& device, int64_t channels) {
  std::vector<Layout> layouts{Layout::plain};
  if (device.is_gpu()) return layouts;
  layouts.push_back(Layout::planar);
  if (channels % 8 == 0) layouts.push_back(Layout::blocked8);
  if (channels % 16 == 0) layouts.push_back(Layout::blocked16);
  return layouts;
}

}  // namespace dtrain::test
