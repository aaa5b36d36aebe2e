#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/one_dimensional.h"
#include "nn/layers/pooling/pooling.h"
#include "nn/layers/table.h"
#include "nn/layers/window.h"

namespace dtrain {
namespace {

struct Pooling1DOptions {
  int64_t pool_size = 2;
  std::optional<int64_t> strides;
  Border padding = Border::valid;

  static Schema<Pooling1DOptions> schema(PoolingSpec::Kind kind) {
    using O = Pooling1DOptions;
    return Schema<O>(fmt::format("The {} of each window of a sequence, separately for each channel.",
                                 pooled_value(kind)))
        .example("{pool_size: 2, strides: 2}")
        .optional("pool_size", &O::pool_size, "length of the window", extent())
        .optional("strides", &O::strides,
                  "Stride of the window: the distance between neighboring windows. Default: pool_size.",
                  between<std::optional<int64_t>>(1, 1 << 30))
        .optional("padding", &O::padding,
                  "With `valid`, all windows are inside the sequence. With `same`, there are ceil(length / "
                  "stride) windows, and windows at the ends are cut off.");
  }
};

struct GlobalPooling1DOptions {
  bool keepdims = false;

  static Schema<GlobalPooling1DOptions> schema(PoolingSpec::Kind kind) {
    return Schema<GlobalPooling1DOptions>(
               fmt::format("The {} of each channel of a sequence{}.", pooled_value(kind),
                           kind == PoolingSpec::Kind::average ? ", without masked steps" : ""))
        .optional("keepdims", &GlobalPooling1DOptions::keepdims,
                  "Whether to keep the axis of steps. If true, the output is a sequence of length 1. If "
                  "false, it is a vector.");
  }
};

/// Computes the mean over the steps that are not masked.
class PreparedMaskedAverage : public PreparedLayer {
 public:
  explicit PreparedMaskedAverage(const LayerRequest& request)
      : ops_(request.ops), spec_{request.batch, request.inputs[0].shape[0], request.inputs[0].shape[1]} {}

  void forward(const LayerArguments& args) override {
    ops_.masked_average(spec_, args.input(), args.mask(), args.output());
  }
  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0])
      ops_.masked_average_backward(spec_, args.mask(), args.diff_output(), args.diff_inputs[0]);
  }

 private:
  Ops& ops_;
  MaskedAverageSpec spec_;
};

/// Global average pooling: the mean over all steps of a sequence. Masked steps do not count.
class GlobalAveragePooling1D : public Layer {
 public:
  explicit GlobalAveragePooling1D(const GlobalPooling1DOptions& options)
      : unmasked_(
            layer_of_sequences({"global_average_pooling2d", {}, {}},
                               GlobalPooling1DOptions::schema(PoolingSpec::Kind::average).write(options))) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return unmasked_->infer(inputs, report_error);
  }
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    if (request.is_masked(0)) return std::make_unique<PreparedMaskedAverage>(request);
    return unmasked_->prepare(request);
  }
  MaskRule mask_rule() const override { return MaskRule::read; }

 private:
  std::shared_ptr<const Layer> unmasked_;
};

/// Adds the sequence layer `name`1d. Its options have the same names as the options of the image layer
/// `name`2d.
template <class Options>
void add_pooling(Registry<Layer>& table, const std::string& name, PoolingSpec::Kind kind) {
  table.add_with(name + "1d", Options::schema(kind), [name, kind](const Options& options, const ConfigNode&) {
    return layer_of_sequences({name + "2d", {"pool_size", "strides"}, {}},
                              Options::schema(kind).write(options));
  });
}

}  // namespace

void add_pooling1d(Registry<Layer>& table) {
  using Kind = PoolingSpec::Kind;
  add_pooling<Pooling1DOptions>(table, "max_pooling", Kind::max);
  add_pooling<Pooling1DOptions>(table, "average_pooling", Kind::average);
  add_pooling<GlobalPooling1DOptions>(table, "global_max_pooling", Kind::max);
  table.add<GlobalAveragePooling1D>("global_average_pooling1d",
                                    GlobalPooling1DOptions::schema(Kind::average));
}

}  // namespace dtrain
