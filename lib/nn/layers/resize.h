// Image resizing: the interpolation option and the computation.
#pragma once

#include "config/schema.h"
#include "nn/layer.h"
#include "ops/resize.h"

namespace dtrain {

enum class ResizeInterpolation { nearest, bilinear };

template <>
inline const EnumNames<ResizeInterpolation> names_of<ResizeInterpolation> = {
    {ResizeInterpolation::nearest, "nearest"}, {ResizeInterpolation::bilinear, "bilinear"}};

/// Resizes the images of the input to the size of the output. The sizes must be supported:
/// ResizedAxis::fits() must be true for the height and the width.
class PreparedResize : public PreparedLayer {
 public:
  PreparedResize(const LayerRequest& request, ResizeInterpolation interpolation)
      : ops_(request.ops),
        spec_{.batch = request.batch,
              .height = request.inputs[0].shape[0],
              .width = request.inputs[0].shape[1],
              .channels = request.inputs[0].shape[2],
              .out_height = request.output().shape[0],
              .out_width = request.output().shape[1],
              .is_nearest = interpolation == ResizeInterpolation::nearest} {}

  void forward(const LayerArguments& args) override { ops_.resize(spec_, args.input(), args.output()); }
  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0]) ops_.resize_backward(spec_, args.diff_output(), args.diff_inputs[0]);
  }

 private:
  Ops& ops_;
  ResizeSpec spec_;
};

}  // namespace dtrain
