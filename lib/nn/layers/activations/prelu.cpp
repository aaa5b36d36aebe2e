#include <algorithm>

#include <fmt/format.h>

#include "config/axes.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/layers/weight_options.h"

namespace dtrain {
namespace {

/// The `shared_axes:` option: axes of a sample, given as one number or a list.
struct SharedAxes : Axes {
  bool has(size_t axis) const {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
  }
};

}  // namespace

template <>
struct Codec<SharedAxes> {
  static bool parse(const ConfigNode& node, const std::string& where, SharedAxes& out,
                    Diagnostics& diagnostics) {
    return Codec<Axes>::parse(node, where, out, diagnostics);
  }
  static ConfigNode write(const SharedAxes& value) { return Codec<std::vector<int64_t>>::write(value.axes); }
  static Json schema() { return Codec<Axes>::schema(); }
};

namespace {

struct PreluOptions {
  WeightOptions alpha{registry<Initializer>().make("zeros")};
  std::optional<SharedAxes> shared_axes;

  static const Schema<PreluOptions>& schema() {
    using O = PreluOptions;
    static const auto schema =
        Schema<O>(
            "Parametric rectified linear unit: x if x is positive, and alpha * x otherwise. Each element of "
            "a sample has its own alpha, which is trained.")
            .example("{shared_axes: 1}")
            .part("alpha_", &O::alpha, weight_schema("alpha"))
            .optional("shared_axes", &O::shared_axes,
                      "Axes, counted from 1, along which all elements share one alpha. For images, [1, 2] "
                      "gives one alpha per channel. Default: every element has its own alpha.")
            .details({});
    return schema;
  }
};

/// Collects the axes of an array from outermost to innermost, and merges adjacent axes if possible. For the
/// meaning of extents and steps, see PreluSpec.
class PreluAxes {
 public:
  void add(int64_t extent, int64_t step) {
    if (extent == 1) return;
    const bool continues = !extents_.empty() && steps_.back() == step * extent;
    if (continues) {
      extents_.back() *= extent;
      steps_.back() = step;
    } else {
      extents_.push_back(extent);
      steps_.push_back(step);
    }
  }
  bool fit() const { return extents_.size() <= PreluSpec::kAxes; }
  PreluSpec spec() const {
    PreluSpec spec;
    std::copy_backward(extents_.begin(), extents_.end(), spec.extents.end());
    std::copy_backward(steps_.begin(), steps_.end(), spec.steps.end());
    return spec;
  }

 private:
  std::vector<int64_t> extents_, steps_;
};

/// Returns the stride in alpha for each axis of a sample. The stride is 0 for axes along which all elements
/// share an alpha.
std::vector<int64_t> steps_of(const Shape& alpha) {
  std::vector<int64_t> steps(alpha.rank(), 0);
  int64_t stride = 1;
  for (size_t axis = alpha.rank(); axis-- > 0; stride *= alpha[axis])
    if (alpha[axis] != 1) steps[axis] = stride;
  return steps;
}

/// Returns the axes of a batch, in the order in which the layout stores them in memory.
PreluAxes axes_in(Layout layout, int64_t batch, const Shape& sample, const Shape& alpha) {
  const std::vector<int64_t> steps = steps_of(alpha);
  const size_t rank = sample.rank();
  PreluAxes axes;
  axes.add(batch, 0);
  const int64_t block = layout == Layout::blocked16 ? 16 : layout == Layout::blocked8 ? 8 : 1;
  if (layout != Layout::plain) axes.add(sample.back() / block, steps.back() * block);
  for (size_t axis = 0; axis + 1 < rank; ++axis) axes.add(sample[axis], steps[axis]);
  if (rank > 0) axes.add(layout == Layout::plain ? sample.back() : block, steps.back());
  return axes;
}

class PreparedPrelu : public PreparedLayer {
 public:
  PreparedPrelu(const LayerRequest& request, const Shape& alpha)
      : ops_(request.ops),
        spec_(axes_in(request.input_layouts[0], request.batch, request.inputs[0].shape, alpha).spec()) {
    requirements_.input_layouts = {request.input_layouts[0]};
    requirements_.output_layouts = {request.input_layouts[0]};
    requirements_.backward_reads_inputs = request.training;
    requirements_.forward_in_place = !request.training;
    requirements_.backward_in_place = true;
  }

  void forward(const LayerArguments& args) override {
    ops_.prelu_forward(spec_, args.input(), args.parameters[0], args.output());
  }

  void backward(const LayerArguments& args) override {
    ops_.prelu_backward(spec_, {.src = args.input(),
                                .slopes = args.parameters[0],
                                .diff_dst = args.diff_output(),
                                .diff_src = args.diff_inputs[0],
                                .diff_slopes = args.diff_parameters[0]});
  }

 private:
  Ops& ops_;
  PreluSpec spec_;
};

class Prelu : public LayerWith<PreluOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input_with_axis(inputs, "of alphas", report_error);
    if (!input) return {};
    const auto rank = static_cast<int64_t>(input->shape.rank());
    if (options_.shared_axes)
      for (const int64_t axis : options_.shared_axes->axes)
        if (axis < 1 || axis > rank) {
          report_error(fmt::format(
              "shared_axes: expected axes from 1 to {} for the input '{}' of shape {}, but found {}", rank,
              input->name, input->shape.str(), axis));
          return {};
        }
    if (!axes_in(Layout::plain, 2, input->shape, alpha_of(input->shape)).fit()) {
      report_error(
          fmt::format("shared_axes: this combination of axes is not supported; use adjacent axes, or an "
                      "input with at most {} axes",
                      PreluSpec::kAxes - 1));
      return {};
    }
    return same_as(input);
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    return {options_.alpha.parameter("alpha", alpha_of(inputs[0].shape))};
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPrelu>(request, alpha_of(request.inputs[0].shape));
  }

 private:
  Shape alpha_of(const Shape& sample) const {
    Shape alpha = sample;
    for (size_t axis = 0; axis < alpha.rank(); ++axis)
      if (options_.shared_axes && options_.shared_axes->has(axis + 1)) alpha[axis] = 1;
    return alpha;
  }
};

}  // namespace

void add_prelu(Registry<Layer>& table) {
  table.add<Prelu>("prelu", PreluOptions::schema());
}

}  // namespace dtrain
