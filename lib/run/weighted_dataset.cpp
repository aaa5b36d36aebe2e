#include "run/weighted_dataset.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

int64_t WeightedDataset::Classes::of(DType dtype, const void* values, size_t row) const {
  if (dtype == DType::int32) return static_cast<const int32_t*>(values)[row];
  const float* first = static_cast<const float*>(values) + static_cast<int64_t>(row) * columns;
  if (columns == 1) return *first > 0.5f ? 1 : 0;
  return std::max_element(first, first + columns) - first;
}

WeightedDataset::WeightedDataset(std::shared_ptr<const Dataset> data, const TensorSpec& spec, size_t own,
                                 Classes classes)
    : data_(std::move(data)), columns_(data_->columns()), own_(own), classes_(std::move(classes)) {
  columns_.resize(own_);
  columns_.push_back(spec);
}

size_t WeightedDataset::working_bytes(int64_t samples) const {
  const TensorSpec& target = columns_[classes_.target];
  const auto bytes = static_cast<size_t>(target.shape.elements()) * bytes_of(target.dtype) + sizeof(float);
  return data_->working_bytes(samples) + static_cast<size_t>(samples) * bytes;
}

void WeightedDataset::read(const Samples& samples, std::span<const View> dst) const {
  if (!dst[classes_.target].data || !dst[own_].data) {
    for (size_t i = 0; i < dst.size(); ++i)
      if (dst[i].data) read_column(i, samples, dst[i].data);
    return;
  }
  std::vector<View> of_data(dst.begin(), dst.begin() + static_cast<int64_t>(own_));
  std::vector<float> own;
  if (has_own()) {
    own.resize(samples.size());
    of_data.push_back({own.data(), Shape{static_cast<int64_t>(samples.size())}});
  }
  data_->read(samples, of_data);
  weigh(samples, own.empty() ? nullptr : own.data(), dst[classes_.target].data, dst[own_].f32());
}

void WeightedDataset::read_column(size_t index, const Samples& samples, void* dst) const {
  if (index < own_) return data_->read_column(index, samples, dst);
  std::vector<float> own;
  if (has_own()) {
    own.resize(samples.size());
    data_->read_column(own_, samples, own.data());
  }
  // Targets are float32 or int32. A vector of float has space for both, because their elements have four
  // bytes.
  std::vector<float> target;
  if (!classes_.weights.empty()) {
    target.resize(samples.size() * static_cast<size_t>(columns_[classes_.target].shape.elements()));
    data_->read_column(classes_.target, samples, target.data());
  }
  weigh(samples, own.empty() ? nullptr : own.data(), target.data(), static_cast<float*>(dst));
}

void WeightedDataset::weigh(const Samples& samples, const float* own, const void* target,
                            float* weights) const {
  const auto rows = static_cast<size_t>(columns_[own_].shape.elements());
  for (size_t s = 0; s < samples.size(); ++s) {
    const float of_sample = own ? own[s] : 1.0f;
    if (!(of_sample >= 0.0f) || std::isinf(of_sample))
      throw UserError(fmt::format("{}: the sample weight must be finite and not negative, but it is {}",
                                  data_->sample_name(samples.rows[s]), of_sample));
    for (size_t r = s * rows; r < (s + 1) * rows; ++r) {
      weights[r] = of_sample;
      if (classes_.weights.empty()) continue;
      const int64_t number = classes_.of(columns_[classes_.target].dtype, target, r);
      // Class indices out of range are ignored here, because the loss reports them.
      if (number >= 0 && number < static_cast<int64_t>(classes_.weights.size()))
        weights[r] *= classes_.weights[static_cast<size_t>(number)];
    }
  }
}

}  // namespace dtrain
