#include "data/stages/fill.h"

#include <cmath>

namespace dtrain {

void FillStage::run(const StageInput& rows, void* dst) const {
  if (input().dtype == DType::float64) return run_as(rows, static_cast<double*>(dst));
  run_as(rows, static_cast<float*>(dst));
}

template <class T>
void FillStage::run_as(const StageInput& rows, T* dst) const {
  const size_t width = values_.size();
  for (const int64_t place : rows.places) {
    const T* row = static_cast<const T*>(rows.base) + static_cast<size_t>(place) * width;
    for (size_t i = 0; i < width; ++i) *dst++ = std::isnan(row[i]) ? static_cast<T>(values_[i]) : row[i];
  }
}

}  // namespace dtrain
