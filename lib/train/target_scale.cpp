#include "train/target_scale.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "data/row_fitter.h"

namespace dtrain {

TargetScale::TargetScale(const RunConfig& config, size_t head) {
  const TensorSpec& target = config.heads[head].target;
  if (config.heads[head].loss->tells_classes() || target.dtype != DType::float32) return;
  const ColumnTransforms transforms = transforms_of(target, true, config.dataset.transforms);
  if (transforms.chosen.empty()) return;
  DataFacts facts = config.dataset.facts;
  RowFitter fitter(facts, name_for_of(target), {});
  ColumnPlan stored({"", transforms.stored.shape, DType::float32});
  const PlannedColumn planned =
      plan_column({stored, stored}, target, true, transforms.chosen, {}, fitter, {});
  const auto map = planned.plan.exact_map();  // views the plan's numbers
  const auto is_zero = [](double scale) { return scale == 0; };
  if (!map || std::any_of(map->scale.begin(), map->scale.end(), is_zero)) return;
  for (size_t i = 0; i < map->scale.size(); ++i) {
    scale_.push_back(1 / map->scale[i]);
    offset_.push_back(-map->offset[i] * scale_.back());
  }
}

std::optional<double> TargetScale::unit() const {
  if (scale_.empty() || scale_[0] == 1 ||
      std::adjacent_find(scale_.begin(), scale_.end(), std::not_equal_to<>()) != scale_.end())
    return std::nullopt;
  return std::abs(scale_[0]);
}

void TargetScale::undo(float* values, int64_t count) const {
  if (scale_.empty()) return;
  for (int64_t i = 0; i < count; ++i) {
    const size_t element = static_cast<size_t>(i) % scale_.size();
    values[i] = static_cast<float>(static_cast<double>(values[i]) * scale_[element] + offset_[element]);
  }
}

}  // namespace dtrain
