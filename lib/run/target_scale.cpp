#include "run/target_scale.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "data/readers/reader.h"
#include "run/probabilities.h"
#include "run/unit_plan.h"

namespace dtrain {

namespace {

/// Returns whether the target has numeric values instead of classes, even if the loss is a classification
/// loss. This is the case for targets that are inputs of the model, and for target images that are not masks.
bool has_values(const RunConfig& config, const TensorSpec& target) {
  const auto& train = config.dataset.train;
  return train && (train->find_input_target(target.name) ||
                   (train->reader && train->reader->target_picture() == TargetPicture::colors));
}

}  // namespace

TargetScale::TargetScale(const RunConfig& config, size_t head)
    : takes_logits_(are_logits(config.heads[head].scores())) {
  const Head& one = config.heads[head];
  if (!one.loss || one.target.dtype != DType::float32) return;
  if (one.loss->tells_classes() && !has_values(config, one.target)) return;
  const ColumnPlan plan = unit_plan_of_target(config, one.target);
  const auto map = plan.exact_map();  // has pointers into `plan`
  const auto is_zero = [](double scale) { return scale == 0; };
  if (!map || std::any_of(map->scale.begin(), map->scale.end(), is_zero)) return;
  for (size_t i = 0; i < map->scale.size(); ++i) {
    scale_.push_back(1 / map->scale[i]);
    offset_.push_back(-map->offset[i] * scale_.back());
  }
}

std::optional<double> TargetScale::unit() const {
  if (takes_logits_ || scale_.empty() || scale_[0] == 1 ||
      std::adjacent_find(scale_.begin(), scale_.end(), std::not_equal_to<>()) != scale_.end())
    return std::nullopt;
  return std::abs(scale_[0]);
}

bool TargetScale::needs_double() const {
  constexpr double kMostOffset = 256;  // largest offset, in units of the transformed target
  for (size_t i = 0; i < scale_.size(); ++i)
    if (std::abs(offset_[i]) > kMostOffset * std::abs(scale_[i])) return true;
  return false;
}

std::vector<double> TargetScale::undone(std::span<const float> values) const {
  std::vector<double> all(values.begin(), values.end());
  if (scale_.empty()) return all;
  const bool in_double = needs_double();
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t element = i % scale_.size();
    all[i] = all[i] * scale_[element] + offset_[element];
    if (!in_double) all[i] = static_cast<double>(static_cast<float>(all[i]));
  }
  return all;
}

void TargetScale::undo(std::span<float> values) const {
  const std::vector<double> all = undone(values);
  std::transform(all.begin(), all.end(), values.begin(), [](double one) { return static_cast<float>(one); });
}

void TargetScale::undo_scale(std::span<float> values) const {
  if (scale_.empty()) return;
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<double>(values[i]) * scale_[i % scale_.size()]);
}

}  // namespace dtrain
