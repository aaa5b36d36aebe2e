#include "data/stages/affine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "data/stages/number_at.h"

namespace dtrain {

namespace {

TensorSpec with_type(TensorSpec spec, DType type) {
  spec.dtype = type;
  return spec;
}

/// Largest offset that is added in float32. Up to 256, neighboring float32 numbers differ by at most 2^-16;
/// larger numbers are farther apart. If the offset is larger, the center is subtracted from the input before
/// scaling instead.
constexpr double kMostOffset = 256;

template <class T>
T saturated(float value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<float>(Limits::min())) return Limits::min();
  if (value >= static_cast<float>(Limits::max())) return Limits::max();
  return static_cast<T>(value);
}

/// Returns one value for each element of a row. `values` has one value for all elements, or one per channel.
std::vector<double> spread(const std::vector<double>& values, int64_t elements) {
  std::vector<double> all(static_cast<size_t>(elements));
  for (size_t i = 0; i < all.size(); ++i) all[i] = values[i % values.size()];
  return all;
}

}  // namespace

AffineStage::AffineStage(const TensorSpec& input) : ColumnStage(input, with_type(input, DType::float32)) {}

AffineStage::AffineStage(const AffineStage& other, DType type)
    : ColumnStage(other.input(), with_type(other.output(), type)),
      scale_(other.scale_),
      offset_(other.offset_),
      run_scale_(other.run_scale_),
      run_offset_(other.run_offset_),
      run_center_(other.run_center_) {}

std::shared_ptr<const AffineStage> AffineStage::then(std::vector<double> scale,
                                                     std::vector<double> offset) const {
  auto stage = std::make_shared<AffineStage>(*this);
  const size_t length = std::max({scale.size(), offset.size(), scale_.size()});
  if (length > 1) {
    scale = spread(scale, elements());
    offset = spread(offset, elements());
    stage->scale_ = spread(scale_, elements());
    stage->offset_ = spread(offset_, elements());
  }
  for (size_t i = 0; i < stage->scale_.size(); ++i) {
    stage->offset_[i] = stage->offset_[i] * scale[i] + offset[i];
    stage->scale_[i] *= scale[i];
  }
  stage->run_scale_.assign(stage->scale_.begin(), stage->scale_.end());
  stage->run_offset_.assign(stage->offset_.begin(), stage->offset_.end());
  stage->run_center_.clear();
  for (size_t i = 0; i < stage->scale_.size(); ++i) {
    if (std::abs(stage->offset_[i]) <= kMostOffset || stage->scale_[i] == 0) continue;
    stage->run_center_.resize(stage->scale_.size());
    stage->run_center_[i] = -stage->offset_[i] / stage->scale_[i];
    stage->run_offset_[i] = 0;
  }
  const auto fits = [](double value) { return std::isfinite(static_cast<float>(value)); };
  for (const auto* values : {&stage->scale_, &stage->offset_})
    if (const auto bad = std::find_if_not(values->begin(), values->end(), fits); bad != values->end())
      throw UserError(
          fmt::format("the scale and the offset must be in the range of float32, but the {} is {}",
                      values == &stage->scale_ ? "scale" : "offset", *bad));
  return stage;
}

std::shared_ptr<const AffineStage> AffineStage::cast(DType type) const {
  return std::shared_ptr<const AffineStage>(new AffineStage(*this, type));
}

std::optional<Affine> AffineStage::map() const {
  if (!is_open() || !run_center_.empty() || input().dtype == DType::float64) return std::nullopt;
  return run_map();
}

std::optional<ExactAffine> AffineStage::exact_map() const {
  if (!is_open()) return std::nullopt;
  return ExactAffine{scale_, offset_};
}

void AffineStage::run(const StageInput& rows, void* dst) const {
  if (is_open())
    return gather_affine(rows.base, input().dtype, rows.places, elements(), run_map(),
                         static_cast<float*>(dst));
  if (output().dtype == DType::float64) return run_in_double(rows, static_cast<double*>(dst));
  // Values that are not scaled are converted directly to integers. A conversion through float32 would change
  // integers that float32 cannot represent exactly.
  const bool exact =
      scale_.size() == 1 && scale_[0] == 1 && offset_[0] == 0 && input().dtype != DType::float32;
  if (output().dtype == DType::int32)
    exact ? run_exact_cast(rows, static_cast<int32_t*>(dst)) : run_cast(rows, static_cast<int32_t*>(dst));
  else
    exact ? run_exact_cast(rows, static_cast<uint8_t*>(dst)) : run_cast(rows, static_cast<uint8_t*>(dst));
}

void AffineStage::run_in_double(const StageInput& rows, double* dst) const {
  const auto channels = static_cast<int64_t>(scale_.size());
  for (const int64_t place : rows.places)
    for (int64_t i = 0; i < elements(); ++i) {
      const auto channel = static_cast<size_t>(i % channels);
      *dst++ =
          scale_[channel] * number_at(rows.base, input().dtype, place * elements() + i) + offset_[channel];
    }
}

template <class T>
void AffineStage::run_cast(const StageInput& rows, T* dst) const {
  std::vector<float> values(static_cast<size_t>(elements()));
  for (const int64_t place : rows.places) {
    gather_affine(rows.base, input().dtype, {&place, 1}, elements(), run_map(), values.data());
    dst = std::transform(values.begin(), values.end(), dst, saturated<T>);
  }
}

template <class T>
void AffineStage::run_exact_cast(const StageInput& rows, T* dst) const {
  constexpr double kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  for (const int64_t place : rows.places)
    for (int64_t i = 0; i < elements(); ++i) {
      const double number = number_at(rows.base, input().dtype, place * elements() + i);
      *dst++ = std::isnan(number) ? T{0} : static_cast<T>(std::clamp(number, kLeast, kMost));
    }
}

}  // namespace dtrain
