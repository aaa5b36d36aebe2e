// zero_padding3d, cropping3d and upsampling3d. Each layer runs two 2-D operations. The first operation works
// on each plane of the volume, along its height and width. The second operation works along the depth: it
// treats the volume as an image whose rows are whole planes.
#include <functional>

#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/reshaping/padding.h"
#include "nn/layers/reshaping/strided.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct Padding3DOptions {
  Padding3 padding{1, 1, 1, 1, 1, 1};

  static const Schema<Padding3DOptions>& schema() {
    static const auto schema =
        Schema<Padding3DOptions>("Pads volumes with zeros.")
            .example("{padding: [1, 2, 0]}")
            .optional("padding", &Padding3DOptions::padding,
                      fmt::format("number of voxels that are added on each side: {}", kPadding3Forms))
            .positional("padding");
    return schema;
  }
};

struct Cropping3DOptions {
  Padding3 cropping{1, 1, 1, 1, 1, 1};

  static const Schema<Cropping3DOptions>& schema() {
    static const auto schema =
        Schema<Cropping3DOptions>("Crops volumes: removes voxels at the edges.")
            .example("{cropping: [1, 2, 0]}")
            .optional("cropping", &Cropping3DOptions::cropping,
                      fmt::format("number of voxels that are removed on each side: {}", kPadding3Forms))
            .positional("cropping");
    return schema;
  }
};

struct UpSampling3DOptions {
  Size3 size{2, 2, 2};

  static const Schema<UpSampling3DOptions>& schema() {
    static const auto schema =
        Schema<UpSampling3DOptions>("Enlarges volumes by integer factors. Each voxel is repeated.")
            .example("{size: 2}")
            .optional("size", &UpSampling3DOptions::size,
                      "factors by which the depth, the height and the width are multiplied")
            .positional("size");
    return schema;
  }
};

/// An operation that reads one array and writes another, with its backward operation.
struct Step {
  std::function<void(const void*, void*)> forward, backward;
};

/// Runs two steps one after the other. The result of the first step, with `between` elements, is in scratch
/// memory.
class PreparedTwoSteps : public PreparedLayer {
 public:
  PreparedTwoSteps(const LayerRequest& request, int64_t between, Step first, Step second)
      : first_(std::move(first)), second_(std::move(second)) {
    requirements_.scratch_bytes = static_cast<size_t>(between) * bytes_of(request.ops.compute_type());
  }

  void forward(const LayerArguments& args) override {
    first_.forward(args.input(), args.scratch);
    second_.forward(args.scratch, args.output());
  }
  void backward(const LayerArguments& args) override {
    if (!args.diff_inputs[0]) return;
    second_.backward(args.diff_output(), args.scratch);
    first_.backward(args.scratch, args.diff_inputs[0]);
  }

 private:
  Step first_, second_;
};

/// Returns a step that pads images. `inner` is the shape of the batch of images before the padding.
Step padding_step(Ops& ops, const Padding2& padding, const Shape& inner) {
  return {[=, &ops](const void* src, void* dst) { ops.pad_images(padding, src, dst, inner); },
          [=, &ops](const void* src, void* dst) { ops.crop_images(padding, src, dst, inner); }};
}

Step turned_round(const Step& step) {
  return {step.backward, step.forward};
}

/// Prepares padding of volumes if `pads` is true, and cropping otherwise. `inner` is the shape of a volume
/// without the padding, and `outer` is its shape with the padding.
std::unique_ptr<PreparedLayer> prepare_padding(const LayerRequest& request, const Padding3& sides,
                                               const Shape& inner, const Shape& outer, bool pads) {
  const int64_t n = request.batch, channels = inner[3];
  const Padding2 of_planes{sides.top, sides.bottom, sides.left, sides.right}, across{sides.front, sides.back};
  // The first step pads or crops the height and width of each plane; in this step, there are volume[0]
  // planes. The second step pads or crops the depth; in this step, each plane already has the height and
  // width of `plane`.
  const Shape& volume = pads ? inner : outer;
  const Shape& plane = pads ? outer : inner;
  const Step first = padding_step(request.ops, of_planes, {n * volume[0], inner[1], inner[2], channels});
  const Step second = padding_step(request.ops, across, {n, inner[0], plane[1] * plane[2], channels});
  const int64_t between = n * volume[0] * plane[1] * plane[2] * channels;
  if (pads) return std::make_unique<PreparedTwoSteps>(request, between, first, second);
  return std::make_unique<PreparedTwoSteps>(request, between, turned_round(first), turned_round(second));
}

class ZeroPadding3D : public LayerWith<Padding3DOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = volume_input(inputs, report_error);
    if (!input) return {};
    const auto& [top, bottom, left, right, front, back] = options_.padding;
    const Shape& shape = input->shape;
    return {TensorSpec{{},
                       {shape[0] + front + back, shape[1] + top + bottom, shape[2] + left + right, shape[3]},
                       DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return prepare_padding(request, options_.padding, request.inputs[0].shape, request.output().shape, true);
  }
};

class Cropping3D : public LayerWith<Cropping3DOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = volume_input(inputs, report_error);
    if (!input) return {};
    const auto& [top, bottom, left, right, front, back] = options_.cropping;
    const Shape& shape = input->shape;
    const int64_t depth = shape[0] - front - back, height = shape[1] - top - bottom,
                  width = shape[2] - left - right;
    if (depth < 1 || height < 1 || width < 1) {
      report_error(fmt::format("cropping [[{}, {}], [{}, {}], [{}, {}]] removes the whole input of shape {}",
                               front, back, top, bottom, left, right, shape.str()));
      return {};
    }
    return {TensorSpec{{}, {depth, height, width, shape[3]}, DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return prepare_padding(request, options_.cropping, request.output().shape, request.inputs[0].shape,
                           false);
  }
};

class UpSampling3D : public LayerWith<UpSampling3DOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = volume_input(inputs, report_error);
    if (!input) return {};
    const Shape& shape = input->shape;
    const Size3& times = options_.size;
    constexpr int64_t kMost = int64_t{1} << 30;
    if (times.depth > kMost / shape[0] || times.height > kMost / shape[1] || times.width > kMost / shape[2]) {
      report_error("the output would have more than 2^30 planes, rows or columns");
      return {};
    }
    return {TensorSpec{{},
                       {shape[0] * times.depth, shape[1] * times.height, shape[2] * times.width, shape[3]},
                       DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const Shape& volume = request.inputs[0].shape;
    const Size3& times = options_.size;
    const int64_t planes = request.batch * volume[0];
    // Number of elements of one plane after the first step.
    const int64_t plane = volume.elements() / volume[0] * times.height * times.width;
    const auto step = [&](const StridedSums& sums) -> Step {
      Ops& ops = request.ops;
      return {[=, &ops](const void* src, void* dst) { ops.strided_sum(sums.forward, src, dst); },
              [=, &ops](const void* src, void* dst) { ops.strided_sum(sums.backward, src, dst); }};
    };
    return std::make_unique<PreparedTwoSteps>(
        request, planes * plane,
        step(repeated(planes * volume[1], volume[2], volume[3], times.height, times.width)),
        step(repeated(planes, 1, plane, times.depth, 1)));
  }
};

}  // namespace

void add_shape3d(Registry<Layer>& table) {
  table.add<ZeroPadding3D>("zero_padding3d", Padding3DOptions::schema());
  table.add<Cropping3D>("cropping3d", Cropping3DOptions::schema());
  table.add<UpSampling3D>("upsampling3d", UpSampling3DOptions::schema());
}

}  // namespace dtrain
