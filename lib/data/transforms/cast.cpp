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
    return {after.name, after.shape, DType::float32};  // cast accepts all types; float32 is the most general
  }

 private:
  DType dtype_;
};

}  // namespace

void add_cast(Registry<Transform>& table) {
  Schema<CastOptions> schema(
      "Converts the inputs to another type. Conversions to integers round toward zero, and replace values "
      "out of range by the nearest value in range.");
  schema.example("{dtype: float32}");
  schema.required("dtype", &CastOptions::dtype, "the new type");
  table.add<Cast>("cast", schema);
}

}  // namespace dtrain
