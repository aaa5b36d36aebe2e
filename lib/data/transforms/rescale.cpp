#include "data/transforms/transform.h"

namespace dtrain {

namespace {

struct RescaleOptions {
  double scale = 1, offset = 0;
};

class Rescale final : public Transform {
 public:
  explicit Rescale(const RescaleOptions& options) : options_(options) {}
  void apply(ColumnPlan& plan) const override { plan.affine({options_.scale}, {options_.offset}); }
  bool is_for(const TensorSpec& after, bool target) const override {
    return !target && after.dtype == DType::float32;
  }

 private:
  RescaleOptions options_;
};

}  // namespace

void add_rescale(Registry<Transform>& table) {
  Schema<RescaleOptions> schema(
      "Multiplies the values of the float inputs by `scale` and then adds `offset`. The results are "
      "float32.");
  schema.example("{scale: 1/255}");
  schema.required("scale", &RescaleOptions::scale, "the factor")
      .optional("offset", &RescaleOptions::offset, "the number that is added after the multiplication");
  table.add<Rescale>("rescale", schema);
}

}  // namespace dtrain
