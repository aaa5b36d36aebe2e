#include "data/column_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "data/column.h"
#include "data/gather.h"

namespace dtrain {

namespace {

double value_at(const void* array, DType type, int64_t index) {
  switch (type) {
    case DType::uint8:
      return static_cast<const uint8_t*>(array)[index];
    case DType::int32:
      return static_cast<const int32_t*>(array)[index];
    default:
      return static_cast<double>(static_cast<const float*>(array)[index]);
  }
}

template <class T>
T saturated(float value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<float>(Limits::min())) return Limits::min();
  if (value >= static_cast<float>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

/// One value for each element of a row, from one for all or one for each channel.
std::vector<double> spread(const std::vector<double>& values, int64_t elements) {
  std::vector<double> all(static_cast<size_t>(elements));
  for (size_t i = 0; i < all.size(); ++i) all[i] = values[i % values.size()];
  return all;
}

}  // namespace

ColumnPlan::Stage& ColumnPlan::open_stage() {
  if (stages_.empty() || stages_.back().to != DType::float32 || stages_.back().classes > 0) {
    Stage stage{spec_.dtype, DType::float32};
    stage.elements = spec_.shape.elements();
    stages_.push_back(std::move(stage));
  }
  spec_.dtype = DType::float32;
  return stages_.back();
}

void ColumnPlan::affine(std::vector<double> scale, std::vector<double> offset) {
  Stage& stage = open_stage();
  const size_t length = std::max({scale.size(), offset.size(), stage.scale.size()});
  if (length > 1) {
    scale = spread(scale, stage.elements);
    offset = spread(offset, stage.elements);
    stage.scale = spread(stage.scale, stage.elements);
    stage.offset = spread(stage.offset, stage.elements);
  }
  for (size_t i = 0; i < stage.scale.size(); ++i) {
    stage.offset[i] = stage.offset[i] * scale[i] + offset[i];
    stage.scale[i] *= scale[i];
  }
  stage.run_scale.assign(stage.scale.begin(), stage.scale.end());
  stage.run_offset.assign(stage.offset.begin(), stage.offset.end());
  const auto fits = [](float value) { return std::isfinite(value); };
  if (!std::all_of(stage.run_scale.begin(), stage.run_scale.end(), fits) ||
      !std::all_of(stage.run_offset.begin(), stage.run_offset.end(), fits))
    throw UserError(fmt::format("expected a scale and an offset that fit float32, found {} and {}",
                                *std::max_element(stage.scale.begin(), stage.scale.end()),
                                *std::max_element(stage.offset.begin(), stage.offset.end())));
}

void ColumnPlan::cast(DType type) {
  if (type == spec_.dtype) return;
  open_stage().to = type;
  spec_.dtype = type;
}

void ColumnPlan::one_hot(int64_t classes) {
  Stage stage{spec_.dtype, DType::float32};
  stage.elements = spec_.shape.elements();
  stage.classes = classes;
  stages_.push_back(std::move(stage));
  std::vector<int64_t> extents = spec_.shape.extents();
  while (!extents.empty() && extents.back() == 1) extents.pop_back();  // labels in a column of their own
  extents.push_back(classes);
  spec_.shape = Shape(std::move(extents));
  spec_.dtype = DType::float32;
}

std::optional<Affine> ColumnPlan::map() const {
  if (is_copy()) return Affine{};
  const Stage& only = stages_.front();
  if (stages_.size() > 1 || only.classes > 0 || only.to != DType::float32) return std::nullopt;
  return Affine{only.run_scale, only.run_offset};
}

void ColumnPlan::run(const void* base, std::span<const int64_t> rows, void* dst) const {
  if (is_copy())
    return gather_copy(base, static_cast<size_t>(stored_.shape.elements()) * bytes_of(stored_.dtype), rows,
                       dst);
  if (stages_.size() == 1) return stages_.front().run(base, rows, dst);
  std::shared_ptr<std::byte> previous;
  std::vector<int64_t> in_order;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const bool last = i + 1 == stages_.size();
    auto next = last ? nullptr : allocate_bytes(rows.size() * stages_[i].out_bytes());
    stages_[i].run(i == 0 ? base : previous.get(), i == 0 ? rows : std::span<const int64_t>(in_order),
                   last ? dst : next.get());
    if (i == 0) in_order = row_numbers(0, static_cast<int64_t>(rows.size()));
    previous = std::move(next);
  }
}

size_t ColumnPlan::Stage::out_bytes() const {
  return static_cast<size_t>(elements * std::max<int64_t>(1, classes)) * bytes_of(to);
}

void ColumnPlan::Stage::run(const void* base, std::span<const int64_t> rows, void* dst) const {
  if (classes > 0) return run_one_hot(base, rows, static_cast<float*>(dst));
  if (to != DType::float32) return run_cast(base, rows, dst);
  gather_affine(base, from, rows, elements, {run_scale, run_offset}, static_cast<float*>(dst));
}

void ColumnPlan::Stage::run_cast(const void* base, std::span<const int64_t> rows, void* dst) const {
  const bool exact = scale.size() == 1 && scale[0] == 1 && offset[0] == 0 && from != DType::float32;
  std::vector<float> row_values(static_cast<size_t>(elements));
  int64_t at = 0;
  for (const int64_t row : rows) {
    const int64_t first = row * elements;
    if (!exact) gather_affine(base, from, {&row, 1}, elements, {run_scale, run_offset}, row_values.data());
    for (int64_t i = 0; i < elements; ++i, ++at) {
      if (exact) {  // integers that float32 may lack
        const double value = value_at(base, from, first + i);
        if (to == DType::int32)
          static_cast<int32_t*>(dst)[at] = static_cast<int32_t>(value);
        else
          static_cast<uint8_t*>(dst)[at] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      } else if (to == DType::int32) {
        static_cast<int32_t*>(dst)[at] = saturated<int32_t>(row_values[static_cast<size_t>(i)]);
      } else {
        static_cast<uint8_t*>(dst)[at] = saturated<uint8_t>(row_values[static_cast<size_t>(i)]);
      }
    }
  }
}

void ColumnPlan::Stage::run_one_hot(const void* base, std::span<const int64_t> rows, float* dst) const {
  std::fill_n(dst, static_cast<int64_t>(rows.size()) * elements * classes, 0.0f);
  for (const int64_t row : rows) {
    for (int64_t i = 0; i < elements; ++i, dst += classes) {
      const double label = value_at(base, from, row * elements + i);
      if (!(label >= 0 && label < static_cast<double>(classes)) || label != std::floor(label))
        throw UserError(fmt::format("one_hot: expected a class from 0 to {}, found {} (row {})", classes - 1,
                                    label, row));
      dst[static_cast<int64_t>(label)] = 1.0f;
    }
  }
}

}  // namespace dtrain
