#include <algorithm>

#include <fmt/format.h>

#include "config/per_channel.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct RescalingOptions {
  PerChannel scale;
  PerChannel offset{{0}};

  /// Returns the number of channels that the input must have according to the options. Returns 1 if the input
  /// may have any number of channels.
  size_t channels() const { return std::max(scale.values.size(), offset.values.size()); }

  static const Schema<RescalingOptions>& schema() {
    using O = RescalingOptions;
    static const auto schema =
        Schema<O>("Computes x * scale + offset. The channels are the last axis of the input.")
            .example("{scale: 1/127.5, offset: -1}")
            .required("scale", &O::scale, "the factor, or a list with one factor for each channel")
            .optional("offset", &O::offset,
                      "the number that is added after the multiplication, or a list with one number for each "
                      "channel")
            .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
              const size_t scales = o.scale.values.size(), offsets = o.offset.values.size();
              if (scales > 1 && offsets > 1 && scales != offsets)
                report_unexpected(*node.find("offset"), "rescaling's offset",
                                  fmt::format("one number, or {} numbers (as many as in `scale`)", scales),
                                  diagnostics);
            })
            .details({"scale", "offset"});
    return schema;
  }
};

class PreparedRescaling : public PreparedLayer {
 public:
  PreparedRescaling(const LayerRequest& request, const RescalingOptions& options)
      : ops_(request.ops),
        columns_(static_cast<int64_t>(options.channels())),
        rows_(batch_elements(request, request.output().shape) / columns_),
        scale_(of_channels(options.scale)),
        offset_(of_channels(options.offset)),
        zeros_(scale_.size()) {
    requirements_.forward_in_place = true;
    requirements_.backward_in_place = true;
  }

  void forward(const LayerArguments& args) override {
    ops_.rescale(args.output(), args.input(), scale_.data(), offset_.data(), rows_, columns_);
  }

  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0])
      ops_.rescale(args.diff_inputs[0], args.diff_output(), scale_.data(), zeros_.data(), rows_, columns_);
  }

 private:
  /// Returns the factor or offset of each column. If the option has a single number, all columns get this
  /// number.
  std::vector<float> of_channels(const PerChannel& option) const {
    std::vector<float> numbers;
    for (int64_t c = 0; c < columns_; ++c)
      numbers.push_back(static_cast<float>(option.values[static_cast<size_t>(c) % option.values.size()]));
    return numbers;
  }

  Ops& ops_;
  int64_t columns_, rows_;
  std::vector<float> scale_, offset_, zeros_;
};

class Rescaling : public LayerWith<RescalingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input(inputs, report_error);
    const auto channels = static_cast<int64_t>(options_.channels());
    if (!input || channels == 1 || (input->shape.rank() > 0 && input->shape.back() == channels))
      return same_as(input);
    report_error(fmt::format("expected an input with {} channels (the last axis), but '{}' has the shape {}",
                             channels, input->name, input->shape.str()));
    return {};
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedRescaling>(request, options_);
  }
};

}  // namespace

void add_rescaling(Registry<Layer>& table) {
  table.add<Rescaling>("rescaling", RescalingOptions::schema());
}

}  // namespace dtrain
