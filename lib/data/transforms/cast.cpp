#include "data/transforms/transform.h"

namespace dtrain {

namespace {

struct CastOptions {
  DType dtype = DType::float32;
};

class Cast final : public Transform {
 public:
  explicit Cast(const CastOptions& options) : dtype_(options.dtype) {}
  void apply(ColumnPlan& plan) const override { plan.cast(dtype_); }
  TensorSpec before(const TensorSpec& after) const override {
    // This transform accepts all types. Readers supply float32 because it is the most general type.
    return {after.name, after.shape, DType::float32};
  }

 private:
  DType dtype_;
};

}  // namespace

void add_cast(Registry<Transform>& table) {
  Schema<CastOptions> schema(
      "Converts the inputs to another type. Conversions to integers round toward zero. Values that are out "
      "of range are replaced with the nearest value in range.");
  schema.example("{dtype: float32}");
  schema.required("dtype", &CastOptions::dtype, "the new type");
  table.add<Cast>("cast", schema);
}

}  // namespace dtrain
