// Classes of the pixels of masks: images whose values or colors name classes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/codec.h"

namespace dtrain {

/// The classes that the pixels of a mask name. Written as `numbers`, or as a list of gray levels (0 to 255)
/// and colors ("#rrggbb").
struct MaskClasses {
  static constexpr size_t kMost = 256;  // class numbers are bytes

  /// The color of each class, 0xrrggbb, in the order of the class numbers. Empty: the pixels' values are the
  /// class numbers.
  std::vector<uint32_t> colours;

  bool are_numbers() const { return colours.empty(); }
  bool are_grey() const;
  /// Writes the class number of each of the `rgb` pixels (three bytes each) to `classes`. Returns the index
  /// of the first pixel whose color belongs to no class; nullopt if there is none.
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
