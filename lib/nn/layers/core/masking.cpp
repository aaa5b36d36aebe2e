#include <vector>

#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct MaskingOptions {
  double mask_value = 0;

  static const Schema<MaskingOptions>& schema() {
    static const auto schema =
        Schema<MaskingOptions>(
            "Masks steps of a sequence. A step is masked if all its features are equal to mask_value. Later "
            "layers, losses and metrics ignore masked steps.")
            .example("{mask_value: -1}")
            .optional("mask_value", &MaskingOptions::mask_value,
                      "value that all features of a masked step have");
    return schema;
  }
};

class PreparedMasking : public PreparedLayer {
 public:
  PreparedMasking(const LayerRequest& request, float value)
      : ops_(request.ops),
        value_(value),
        columns_(request.output().shape.back()),
        rows_(batch_elements(request, request.output().shape) / columns_) {
    requirements_.backward_reads_outputs = request.training;  // backward reads the mask, which is an output
  }

  void forward(const LayerArguments& args) override {
    ops_.mask_rows(args.input(), value_, args.output(), mask(args), rows_, columns_);
  }

  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0])
      ops_.apply_mask(args.diff_output(), mask(args), args.diff_inputs[0], rows_, columns_);
  }

 private:
  static uint8_t* mask(const LayerArguments& args) { return static_cast<uint8_t*>(args.outputs[1]); }

  Ops& ops_;
  float value_;
  int64_t columns_, rows_;
};

class Masking : public LayerWith<MaskingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* const input = float_input_with_axis(inputs, "of features", report_error);
    if (!input) return {};
    const std::vector<int64_t> leading(input->shape.begin(), input->shape.end() - 1);
    return {*input, {{}, Shape(leading), DType::uint8}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedMasking>(request, static_cast<float>(options_.mask_value));
  }

  /// The layer ignores the mask of its input and creates a new mask, as in Keras.
  MaskRule mask_rule() const override { return MaskRule::read; }
  std::optional<float> padding() const override { return static_cast<float>(options_.mask_value); }
};

}  // namespace

void add_masking(Registry<Layer>& table) {
  table.add<Masking>("masking", MaskingOptions::schema());
}

}  // namespace dtrain
