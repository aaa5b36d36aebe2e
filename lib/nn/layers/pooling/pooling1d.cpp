#include "nn/layers/common.h"
#include "nn/layers/one_dimensional.h"
#include "nn/layers/table.h"
#include "nn/layers/window.h"

namespace dtrain {
namespace {

struct Pooling1DOptions {
  int64_t pool_size = 2;
  std::optional<int64_t> strides;
  Border padding = Border::valid;

  static const Schema<Pooling1DOptions>& schema() {
    using O = Pooling1DOptions;
    static const auto schema =
        Schema<O>(
            "The largest value (max) or the mean (average) of every window of each channel of a sequence.")
            .example("{pool_size: 2, strides: 2}")
            .optional("pool_size", &O::pool_size, "extent of the window", extent())
            .optional("strides", &O::strides, "steps of the window over the sequence; pool_size if null",
                      between<std::optional<int64_t>>(1, 1 << 30))
            .optional(
                "padding", &O::padding,
                "with 'same', windows may extend beyond the ends; there are ceil(extent / stride) windows");
    return schema;
  }
};

struct GlobalPooling1DOptions {
  bool keepdims = false;

  static const Schema<GlobalPooling1DOptions>& schema() {
    static const auto schema =
        Schema<GlobalPooling1DOptions>(
            "The largest value (max) or the mean (average) of each channel of a sequence.")
            .optional("keepdims", &GlobalPooling1DOptions::keepdims, "the output is a sequence of length 1");
    return schema;
  }
};

/// The mean over the steps that are not masked.
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

/// Takes the mean of a whole sequence, without masked steps.
class GlobalAveragePooling1D : public Layer {
 public:
  explicit GlobalAveragePooling1D(const GlobalPooling1DOptions& options)
      : unmasked_(layer_of_sequences({"global_average_pooling2d", {}, {}},
                                     GlobalPooling1DOptions::schema().write(options))) {}

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

/// Adds a sequence layer whose options have the same names as those of the image layer.
template <class Options>
void add_pooling(Registry<Layer>& table, const std::string& name, const std::string& image) {
  table.add_with(name, Options::schema(), [image](const Options& options, const ConfigNode&) {
    return layer_of_sequences({image, {"pool_size", "strides"}, {}}, Options::schema().write(options));
  });
}

}  // namespace

void add_pooling1d(Registry<Layer>& table) {
  add_pooling<Pooling1DOptions>(table, "max_pooling1d", "max_pooling2d");
  add_pooling<Pooling1DOptions>(table, "average_pooling1d", "average_pooling2d");
  add_pooling<GlobalPooling1DOptions>(table, "global_max_pooling1d", "global_max_pooling2d");
  table.add<GlobalAveragePooling1D>("global_average_pooling1d", GlobalPooling1DOptions::schema());
}

}  // namespace dtrain
