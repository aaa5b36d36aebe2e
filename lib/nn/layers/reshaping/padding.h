// Options that padding and cropping layers share, and the computation of padding and cropping for images.
#pragma once

#include <string>
#include <string_view>

#include "config/codec.h"
#include "nn/layer.h"

namespace dtrain {

/// The forms in which users can write a Padding2: one number for all sides, one number per axis, or one
/// number per side.
inline constexpr std::string_view kPadding2Forms =
    "one number, [rows, columns], or [[top, bottom], [left, right]]";

/// The forms in which users can write a Padding3.
inline constexpr std::string_view kPadding3Forms =
    "one number, [planes, rows, columns], or [[front, back], [top, bottom], [left, right]]";

/// Parses and writes the number of pixels on each side, from 0 to 2^20. kPadding3Forms lists the accepted
/// forms.
template <>
struct Codec<Padding3> {
  static bool parse(const ConfigNode& node, const std::string& where, Padding3& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Padding3& value);
  static Json schema();
};
/// Parses and writes the number of pixels on each side, from 0 to 2^20. kPadding2Forms lists the accepted
/// forms.
template <>
struct Codec<Padding2> {
  static bool parse(const ConfigNode& node, const std::string& where, Padding2& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Padding2& value);
  static Json schema();
};

/// Adds a border of zeros to images, or removes a border. The backward pass of padding is the forward pass of
/// cropping, and vice versa.
class PreparedPadding : public PreparedLayer {
 public:
  enum class Kind { pad, crop };  // the operation in the forward pass
  PreparedPadding(const LayerRequest& request, const Padding2& padding, Kind kind);
  void forward(const LayerArguments& args) override;
  void backward(const LayerArguments& args) override;

 private:
  void pad(const void* src, void* dst) { ops_.pad_images(padding_, src, dst, inner_shape_); }
  void crop(const void* src, void* dst) { ops_.crop_images(padding_, src, dst, inner_shape_); }

  Ops& ops_;
  Padding2 padding_;
  bool pads_;
  Shape inner_shape_;  // shape of the batch of images without the border
};

}  // namespace dtrain
