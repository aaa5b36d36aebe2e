// Code for layers that exist both for images and for volumes. Such layers are templates, whose parameter is
// the type of their window sizes: Size2 for images, Size3 for volumes.
#pragma once

#include <string_view>
#include <vector>

#include "config/codec.h"
#include "nn/layers/common.h"

namespace dtrain {

/// The properties in which images (Size2) and volumes (Size3) differ.
template <class Size>
struct Space;

template <>
struct Space<Size2> {
  static constexpr std::string_view kName = "image", kOne = "an image", kElement = "pixel";
  static constexpr std::string_view kAxes = "height, width";
  static constexpr auto kInput = image_input;
};

template <>
struct Space<Size3> {
  static constexpr std::string_view kName = "volume", kOne = "a volume", kElement = "voxel";
  static constexpr std::string_view kAxes = "depth, height, width";
  static constexpr auto kInput = volume_input;
};

/// Returns a list of the extents of `size`, followed by the numbers in `further`.
inline std::vector<int64_t> extents_with(const Size2& size, const std::vector<int64_t>& further) {
  std::vector<int64_t> all = {size.height, size.width};
  all.insert(all.end(), further.begin(), further.end());
  return all;
}
inline std::vector<int64_t> extents_with(const Size3& size, const std::vector<int64_t>& further) {
  std::vector<int64_t> all = {size.depth, size.height, size.width};
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

}  // namespace dtrain
