#include "data/stages/one_hot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "data/stages/number_at.h"

namespace dtrain {

namespace {

TensorSpec with_classes(const TensorSpec& labels, int64_t classes) {
  std::vector<int64_t> extents = labels.shape.extents();
  while (!extents.empty() && extents.back() == 1) extents.pop_back();
  extents.push_back(classes);
  return {labels.name, Shape(std::move(extents)), DType::float32};
}

}  // namespace

OneHotStage::OneHotStage(const TensorSpec& input, int64_t classes)
    : ColumnStage(input, with_classes(input, classes)), classes_(classes) {}

void OneHotStage::run(const StageInput& rows, void* dst) const {
  const int64_t elements = input().shape.elements();
  auto* out = static_cast<float*>(dst);
  std::fill_n(out, static_cast<int64_t>(rows.size()) * elements * classes_, 0.0f);
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int64_t i = 0; i < elements; ++i, out += classes_) {
      const double label = number_at(rows.base, input().dtype, rows.places[row] * elements + i);
      if (!(label >= 0 && label < static_cast<double>(classes_)) || label != std::floor(label))
        throw UserError(fmt::format(
            "one_hot: class numbers must be from 0 to {}, but found {} in row {} (counted from 0)",
            classes_ - 1, label, rows.samples.rows[row]));
      out[static_cast<int64_t>(label)] = 1.0f;
    }
  }
}

}  // namespace dtrain
