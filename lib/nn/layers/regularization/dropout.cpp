#include "nn/layers/regularization/random.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct DropoutOptions {
  double rate = 0;

  static const Schema<DropoutOptions>& schema() {
    static const auto schema =
        Schema<DropoutOptions>(
            "In training, sets randomly chosen elements to 0 and divides the other elements by 1 - rate. "
            "Evaluation and prediction do not change the input.")
            .example("{rate: 0.5}")
            .required("rate", &DropoutOptions::rate, "fraction of the elements that are set to 0",
                      between_excluding_high(0.0, 1.0))
            .details({"rate"});
    return schema;
  }
};

class PreparedDropout : public PreparedRandom {
 public:
  PreparedDropout(const LayerRequest& request, float rate)
      : PreparedRandom(request, rate == 0), rate_(rate), per_sample_(request.output().shape.elements()) {}

 private:
  void apply(const LayerArguments& args, const Philox& random, const void* src, void* dst) override {
    ops_.dropout(dst, src, rate_, random, args.step, args.first_sample, samples_, per_sample_);
  }

  float rate_;
  int64_t per_sample_;
};

class Dropout : public SameShapeLayer<DropoutOptions> {
 public:
  using SameShapeLayer::SameShapeLayer;

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedDropout>(request, static_cast<float>(options_.rate));
  }
};

}  // namespace

void add_dropout(Registry<Layer>& table) {
  table.add<Dropout>("dropout", DropoutOptions::schema());
}

}  // namespace dtrain
