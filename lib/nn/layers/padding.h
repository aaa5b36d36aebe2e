// The sides that layers of padding and cropping have in common, and the computation of images'.
#pragma once

#include <string>
#include <string_view>

#include "config/codec.h"
#include "nn/layer.h"

namespace dtrain {

/// How a Padding2 is written: one number for all sides, one for both sides of an axis, or each side's own.
inline constexpr std::string_view kPadding2Forms =
    "one number, [rows, columns], or [[top, bottom], [left, right]]";

/// How a Padding3 is written.
inline constexpr std::string_view kPadding3Forms =
    "one number, [planes, rows, columns], or [[front, back], [top, bottom], [left, right]]";

/// Sides are from 0 to 2^20 pixels.
template <>
struct Codec<Padding3> {
  static bool parse(const ConfigNode& node, const std::string& where, Padding3& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Padding3& value);
  static Json schema();
};
template <>
struct Codec<Padding2> {
  static bool parse(const ConfigNode& node, const std::string& where, Padding2& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Padding2& value);
  static Json schema();
};

/// Lays a padding of zeros around images, or takes one off; the backward pass of either is the other.
class PreparedPadding : public PreparedLayer {
 public:
  enum class Kind { pad, crop };  // what forward does
  PreparedPadding(const LayerRequest& request, const Padding2& padding, Kind kind);
  void forward(const LayerArguments& args) override;
  void backward(const LayerArguments& args) override;

 private:
  void pad(const void* src, void* dst) { ops_.pad_images(padding_, src, dst, inner_shape_); }
  void crop(const void* src, void* dst) { ops_.crop_images(padding_, src, dst, inner_shape_); }

  Ops& ops_;
  Padding2 padding_;
  bool pads_;
  Shape inner_shape_;  // of the batch without the padding
};

}  // namespace dtrain
