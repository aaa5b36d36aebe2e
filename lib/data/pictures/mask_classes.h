// Converts mask pixels to class numbers. A mask is an image whose gray levels or colors denote classes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/codec.h"

namespace dtrain {

/// The classes that the pixels of a mask denote. In the configuration, this is `numbers`, or a list of gray
/// levels (0 to 255) and colors ("#rrggbb").
struct MaskClasses {
  // Maximum number of classes: class numbers are stored as bytes.
  static constexpr size_t kMost = 256;

  /// The color of each class as 0xrrggbb, in the order of the class numbers. If empty, the values of the
  /// pixels are the class numbers.
  std::vector<uint32_t> colors;

  bool are_numbers() const { return colors.empty(); }
  bool are_gray() const;
  /// Converts the colors of the pixels to class numbers. `rgb` has three bytes for each pixel, and `classes`
  /// gets one byte for each pixel. Returns the index of the first pixel whose color belongs to no class.
  /// Returns nullopt if all colors belong to a class.
  std::optional<size_t> find(std::span<const uint8_t> rgb, uint8_t* classes) const;
  bool operator==(const MaskClasses&) const = default;
};

template <>
struct Codec<MaskClasses> {
  static bool parse(const ConfigNode& node, const std::string& where, MaskClasses& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const MaskClasses& classes);
  static Json schema();
};

}  // namespace dtrain
