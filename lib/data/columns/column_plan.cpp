#include "data/columns/column_plan.h"

#include <algorithm>

#include "data/columns/column.h"
#include "data/stages/affine.h"

namespace dtrain {

namespace {

/// Returns a stage into which the next affine map or conversion can be merged. If the last stage is an affine
/// map whose result is still float32, removes this stage from `stages` and returns it. Otherwise returns a
/// new stage.
std::shared_ptr<const AffineStage> take_open_stage(std::vector<std::shared_ptr<const ColumnStage>>& stages,
                                                   const TensorSpec& input) {
  if (!stages.empty())
    if (auto last = std::dynamic_pointer_cast<const AffineStage>(stages.back()); last && last->is_open()) {
      stages.pop_back();
      return last;
    }
  return std::make_shared<AffineStage>(input);
}

}  // namespace

void ColumnPlan::affine(std::vector<double> scale, std::vector<double> offset) {
  stages_.push_back(take_open_stage(stages_, spec_)->then(std::move(scale), std::move(offset)));
  spec_.dtype = DType::float32;
}

void ColumnPlan::cast(DType type) {
  if (type == spec_.dtype) return;
  stages_.push_back(take_open_stage(stages_, spec_)->cast(type));
  spec_.dtype = type;
}

void ColumnPlan::add(std::shared_ptr<const ColumnStage> stage) {
  spec_.shape = stage->output().shape;
  spec_.dtype = stage->output().dtype;
  stages_.push_back(std::move(stage));
}

std::optional<Affine> ColumnPlan::map() const {
  if (is_copy()) return Affine{};
  if (stages_.size() > 1) return std::nullopt;
  const auto* only = dynamic_cast<const AffineStage*>(stages_.front().get());
  return only ? only->map() : std::nullopt;
}

std::optional<ExactAffine> ColumnPlan::exact_map() const {
  if (is_copy()) return ExactAffine{};
  if (stages_.size() > 1) return std::nullopt;
  const auto* only = dynamic_cast<const AffineStage*>(stages_.front().get());
  return only ? only->exact_map() : std::nullopt;
}

bool ColumnPlan::is_random() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const auto& stage) { return stage->is_random(); });
}

bool ColumnPlan::is_costly() const {
  return std::any_of(stages_.begin(), stages_.end(), [](const auto& stage) { return stage->is_costly(); });
}

size_t ColumnPlan::working_bytes() const {
  size_t most = 0, previous = 0;  // the intermediate results of two consecutive stages exist at the same time
  for (size_t i = 0; i + 1 < stages_.size(); ++i) {
    const size_t next = stages_[i]->output_bytes();
    most = std::max(most, previous + next);
    previous = next;
  }
  return most;
}

void ColumnPlan::run(const StageInput& rows, void* dst) const {
  if (is_copy())
    return gather_copy(rows.base, static_cast<size_t>(stored_.shape.elements()) * bytes_of(stored_.dtype),
                       rows.places, dst);
  if (stages_.size() == 1) return stages_.front()->run(rows, dst);
  const std::vector<int64_t> in_order = row_numbers(0, static_cast<int64_t>(rows.size()));
  StageInput input = rows;
  std::shared_ptr<std::byte> previous;
  for (const auto& stage : stages_) {
    const bool last = &stage == &stages_.back();
    auto next = last ? nullptr : allocate_bytes(rows.size() * stage->output_bytes());
    stage->run(input, last ? dst : next.get());
    previous = std::move(next);
    input = {previous.get(), in_order, rows.samples};
  }
}

}  // namespace dtrain
