#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct DropoutOptions {
  double rate = 0;

  static const Schema<DropoutOptions>& schema() {
    static const auto schema =
        Schema<DropoutOptions>(
            "In training, sets random elements to zero and scales up the others. Otherwise returns its "
            "input.")
            .example("{rate: 0.5}")
            .required("rate", &DropoutOptions::rate, "the fraction of elements that is set to zero",
                      between_excluding_high(0.0, 1.0))
            .details({"rate"});
    return schema;
  }
};

/// The mask depends on the run's seed, the node, the step and the sample's index in the global batch, but not
/// on the replica.
class PreparedDropout : public PreparedLayer {
 public:
  PreparedDropout(const LayerRequest& request, float rate)
      : ops_(request.ops),
        rate_(rate),
        stream_(request.stream),
        samples_(request.batch),
        per_sample_(request.output().shape.elements()) {
    requirements_.is_view = !request.training || rate == 0;
    requirements_.forward_in_place = true;
    requirements_.backward_in_place = true;
  }

  void forward(const LayerArguments& args) override { apply(args, args.input(), args.output()); }

  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0]) apply(args, args.diff_output(), args.diff_inputs[0]);
  }

 private:
  void apply(const LayerArguments& args, const void* src, void* dst) {
    ops_.dropout(dst, src, rate_, Philox::of(args.seed, stream_), args.step, args.first_sample, samples_,
                 per_sample_);
  }

  Ops& ops_;
  float rate_;
  uint32_t stream_;
  int64_t samples_, per_sample_;
};

class Dropout : public LayerWith<DropoutOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input(inputs, report_error));
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedDropout>(request, static_cast<float>(options_.rate));
  }
};

}  // namespace

void add_dropout(Registry<Layer>& table) {
  table.add<Dropout>("dropout", DropoutOptions::schema());
}

}  // namespace dtrain
