#include <fmt/format.h>

#include "base/error.h"
#include "data/transforms/transform.h"

namespace dtrain {

namespace {

struct ReshapeOptions {
  Shape shape;
};

class Reshape final : public Transform {
 public:
  explicit Reshape(const ReshapeOptions& options) : shape_(options.shape) {}

  void apply(ColumnPlan& plan) const override {
    const Shape& from = plan.spec().shape;
    if (from.elements() != shape_.elements())
      throw UserError(
          fmt::format("reshape: a sample must have {} elements for the new shape {}, but has {} elements in "
                      "the shape {} of '{}'",
                      shape_.elements(), shape_.str(), from.elements(), from.str(), plan.spec().name));
    plan.reshape(shape_);
  }

 private:
  Shape shape_;
};

}  // namespace

void add_reshape(Registry<Transform>& table) {
  Schema<ReshapeOptions> schema(
      "Changes the shape of the inputs. The number of elements must stay the same.");
  schema.example("{shape: [28, 28, 1]}");
  schema.required("shape", &ReshapeOptions::shape,
                  "new shape of a sample, without the batch axis. Example: [28, 28, 1]");
  table.add<Reshape>("reshape", schema);
}

}  // namespace dtrain
