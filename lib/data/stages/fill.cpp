#include "data/stages/fill.h"

#include <cmath>

namespace dtrain {

void FillStage::run(const StageInput& rows, void* dst) const {
  auto* out = static_cast<float*>(dst);
  const size_t width = values_.size();
  for (const int64_t place : rows.places) {
    const float* row = static_cast<const float*>(rows.base) + static_cast<size_t>(place) * width;
    for (size_t i = 0; i < width; ++i) *out++ = std::isnan(row[i]) ? values_[i] : row[i];
  }
}

}  // namespace dtrain
