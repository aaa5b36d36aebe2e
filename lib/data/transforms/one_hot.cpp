#include "data/stages/one_hot.h"

#include "data/transforms/transform.h"

namespace dtrain {

namespace {

struct OneHotOptions {
  int64_t classes = 0;
};

class OneHot final : public Transform {
 public:
  explicit OneHot(const OneHotOptions& options) : classes_(options.classes) {}
  void apply(ColumnPlan& plan) const override {
    plan.add(std::make_shared<OneHotStage>(plan.spec(), classes_));
  }
  bool is_for(const TensorSpec& /*after*/, bool target) const override { return target; }
  TensorSpec before(const TensorSpec& after) const override {
    std::vector<int64_t> extents = after.shape.extents();
    if (!extents.empty()) extents.pop_back();
    return {after.name, Shape(std::move(extents)), DType::int32};
  }

 private:
  int64_t classes_;
};

}  // namespace

void add_one_hot(Registry<Transform>& table) {
  Schema<OneHotOptions> schema(
      "Converts targets to one-hot vectors. The targets must be class numbers from 0 to classes - 1.");
  schema.example("{classes: 10}");
  schema.required("classes", &OneHotOptions::classes, "number of classes. The vectors have this length",
                  at_least<int64_t>(1));
  table.add<OneHot>("one_hot", schema);
}

}  // namespace dtrain
