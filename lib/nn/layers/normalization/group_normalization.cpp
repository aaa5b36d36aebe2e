#include <fmt/format.h>

#include "nn/layers/normalization/scale_and_shift.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct GroupNormalizationOptions : ScaleAndShift {
  int64_t groups = 32;
  double epsilon = 1e-3;

  /// Returns the number of groups into which `channels` channels are divided.
  int64_t groups_of(int64_t channels) const { return groups == -1 ? channels : groups; }

  static const Schema<GroupNormalizationOptions>& schema() {
    using O = GroupNormalizationOptions;
    static const auto schema =
        with_scale_and_shift(
            Schema<O>(
                "Normalizes groups of channels of each sample to mean 0 and variance 1, then scales and "
                "shifts each channel.")
                .example("{groups: 4}")
                .optional("groups", &O::groups,
                          "Number of groups, which must divide the number of channels. With -1, each channel "
                          "is a separate group.",
                          between<int64_t>(-1, 1 << 30))
                .optional("epsilon", &O::epsilon,
                          "small number that is added to the variance to avoid division by 0",
                          greater_than(0.0)))
            .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
              if (o.groups == 0)
                report_unexpected(*node.find("groups"), "group_normalization's groups",
                                  "a number of at least 1, or -1", diagnostics);
            })
            .details({"groups", "epsilon", "center", "scale"});
    return schema;
  }
};

/// The saved memory holds the mean of every group, then the inverse standard deviation of every group.
class PreparedGroupNormalization : public PreparedLayer {
 public:
  PreparedGroupNormalization(const LayerRequest& request, const GroupNormalizationOptions& options)
      : ops_(request.ops),
        training_(request.training),
        epsilon_(static_cast<float>(options.epsilon)),
        scale_and_shift_(options),
        samples_(request.batch),
        channels_(request.output().shape.back()),
        pixels_(request.output().shape.elements() / channels_),
        groups_(options.groups_of(channels_)) {
    const size_t statistics = 2 * static_cast<size_t>(samples_ * groups_) * sizeof(float);
    (request.training ? requirements_.saved_bytes : requirements_.scratch_bytes) = statistics;
    requirements_.backward_in_place = true;
    requirements_.backward_reads_inputs = request.training;
  }

  void forward(const LayerArguments& args) override {
    auto* statistics = static_cast<float*>(training_ ? args.saved : args.scratch);
    ops_.group_normalization_forward({.src = args.input(),
                                      .gamma = scale_and_shift_.gamma_of(args.parameters),
                                      .beta = scale_and_shift_.beta_of(args.parameters),
                                      .epsilon = epsilon_,
                                      .dst = args.output(),
                                      .mean = statistics,
                                      .inverse_deviation = statistics + samples_ * groups_,
                                      .samples = samples_,
                                      .pixels = pixels_,
                                      .channels = channels_,
                                      .groups = groups_});
  }

  void backward(const LayerArguments& args) override {
    const auto* statistics = static_cast<const float*>(args.saved);
    ops_.group_normalization_backward({.src = args.input(),
                                       .gamma = scale_and_shift_.gamma_of(args.parameters),
                                       .mean = statistics,
                                       .inverse_deviation = statistics + samples_ * groups_,
                                       .diff_dst = args.diff_output(),
                                       .diff_src = args.diff_inputs[0],
                                       .diff_gamma = scale_and_shift_.gamma_of(args.diff_parameters),
                                       .diff_beta = scale_and_shift_.beta_of(args.diff_parameters),
                                       .samples = samples_,
                                       .pixels = pixels_,
                                       .channels = channels_,
                                       .groups = groups_});
  }

 private:
  Ops& ops_;
  bool training_;
  float epsilon_;
  ScaleAndShift scale_and_shift_;
  int64_t samples_, channels_, pixels_, groups_;
};

class GroupNormalization : public LayerWith<GroupNormalizationOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input_with_axis(inputs, "of channels", report_error);
    if (!input || input->shape.back() % options_.groups_of(input->shape.back()) == 0) return same_as(input);
    report_error(
        fmt::format("expected a number of channels (the last axis) that can be divided into {} equal groups, "
                    "but '{}' has the shape {}",
                    options_.groups, input->name, input->shape.str()));
    return {};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    return options_.parameters({inputs[0].shape.back()});
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }
  bool is_by_position() const override { return false; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedGroupNormalization>(request, options_);
  }
};

}  // namespace

void add_group_normalization(Registry<Layer>& table) {
  table.add<GroupNormalization>("group_normalization", GroupNormalizationOptions::schema());
}

}  // namespace dtrain
