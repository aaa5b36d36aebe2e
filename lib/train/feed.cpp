#include "train/feed.h"

namespace dtrain {

namespace {

constexpr size_t kAlignment = 256;

}  // namespace

void Feed::load(const Batch& batch, Range range, const Plan& plan) {
  if (context_.device().kind == DeviceId::Kind::cpu) {
    batch.read(range.begin, range.size(), plan.columns());
  } else {
    stage(batch, range, plan);
  }
}

void Feed::stage(const Batch& batch, Range range, const Plan& plan) {
  const std::span<const View> columns = plan.columns();
  offsets_.clear();
  size_t bytes = 0;
  for (const View& column : columns) {
    offsets_.push_back(bytes);
    bytes += (column.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  slot_ = 1 - slot_;
  Staging& staging = staging_[static_cast<size_t>(slot_)];
  if (bytes > staging.host.bytes()) {
    context_.synchronize();  // nothing reads the old one any more
    staging = {};
    staging = {context_.allocate_host(bytes), context_.allocate(bytes)};
  }
  context_.wait_uploaded(slot_);
  const auto at = [&](const Buffer& buffer, size_t i) {
    return static_cast<std::byte*>(buffer.data()) + offsets_[i];
  };
  host_columns_.assign(columns.begin(), columns.end());
  for (size_t i = 0; i < columns.size(); ++i) host_columns_[i].data = at(staging.host, i);
  batch.read(range.begin, range.size(), host_columns_);
  context_.upload(slot_, staging.device.data(), staging.host.data(), bytes);
  for (size_t i = 0; i < columns.size(); ++i) {
    const View& column = columns[i];
    const bool to_compute_type = i < plan.input_columns() && column.dtype == DType::float32;
    ops_.load_rows({.from = column.dtype,
                    .to_compute_type = to_compute_type,
                    .row_elements = column.elements() / range.size()},
                   at(staging.device, i), nullptr, range.size(), column.data);
  }
  context_.mark_uploads_used(slot_);
}

}  // namespace dtrain
