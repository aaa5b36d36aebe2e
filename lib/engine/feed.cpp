#include "engine/feed.h"

#include <algorithm>
#include <numeric>

#include "engine/reading.h"

namespace dtrain {

void Feed::load(const Batch& batch, Range range, const Frame& frame) {
  const auto lies_here = [](const View& column) { return column.data != nullptr; };
  if (std::none_of(frame.columns().begin(), frame.columns().end(), lies_here)) return;
  if (context_.device().kind == DeviceId::Kind::cpu) {
    read_samples([&] { batch.read(range.begin, range.size(), frame.columns()); });
    return;
  }
  const BatchSource from = batch.source();
  Source& source = source_of(from.dataset, frame);
  if (from.dataset && from.dataset->on_device()) {
    load_order(source, from);
  } else {
    load_staged(source, batch, range, frame);
  }
}

Feed::Source& Feed::source_of(const Dataset* dataset, const Frame& frame) {
  Source& source = sources_[dataset];
  if (!source.columns.empty()) return source;
  const std::span<const View> columns = frame.columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    const View& view = columns[i];
    Column column;
    const bool computes = i < frame.plan().program().input_columns && view.dtype == DType::float32;
    column.spec = {.from = view.dtype, .to = computes ? ops_.compute_type() : view.dtype};
    if (dataset) column.elements = dataset->columns()[i].shape.elements();
    if (const auto form = dataset ? dataset->stored_form(i) : std::nullopt) {
      column.stored = true;
      column.spec.from = form->dtype;
      column.scale = on_device(form->scale);
      column.offset = on_device(form->offset);
      column.spec.scale = column.scale.f32();
      column.spec.offset = column.offset.f32();
      column.spec.scale_elements = static_cast<int64_t>(form->scale.size());
    }
    if (view.data && dataset && dataset->on_device()) make_resident(column, *dataset, i, view);
    source.columns.push_back(std::move(column));
  }
  return source;
}

Buffer Feed::on_device(std::span<const float> values) {
  if (values.empty()) return {};
  Buffer buffer = context_.allocate(values.size_bytes());
  context_.copy_to_device(buffer.data(), values.data(), values.size_bytes());
  return buffer;
}

void Feed::make_resident(Column& column, const Dataset& dataset, size_t index, const View& view) {
  column.resident = context_.allocate(static_cast<size_t>(dataset.size()) * column.row_bytes(view));
  // Reads the column in blocks, so that the host does not need a copy of the whole column.
  const auto row_bytes = static_cast<int64_t>(column.row_bytes(view));
  const int64_t block = std::max<int64_t>(1, (int64_t{16} << 20) / std::max<int64_t>(1, row_bytes));
  std::vector<std::byte> rows_read(static_cast<size_t>(std::min(block, dataset.size()) * row_bytes));
  std::vector<int64_t> rows;
  for (int64_t first = 0; first < dataset.size(); first += block) {
    rows.resize(static_cast<size_t>(std::min(block, dataset.size() - first)));
    std::iota(rows.begin(), rows.end(), first);
    if (column.stored) {
      dataset.read_stored(index, rows, rows_read.data());
    } else {
      dataset.read_column(index, {rows}, rows_read.data());
    }
    context_.copy_to_device(static_cast<std::byte*>(column.resident.data()) + first * row_bytes,
                            rows_read.data(), rows.size() * static_cast<size_t>(row_bytes));
  }
}

void Feed::load_order(Source& source, const BatchSource& from) {
  if (source.order_number == from.order_number) return;
  const std::span<const int64_t> order = from.order.rows;
  if (!source.order.data()) source.order = context_.allocate(order.size_bytes());
  context_.copy_to_device(source.order.data(), order.data(), order.size_bytes());
  source.order_number = from.order_number;
}

void Feed::gather(const Batch& batch, Range range, const Frame& frame, const int64_t* first) {
  const auto found = sources_.find(batch.source().dataset);
  if (found == sources_.end() || !found->second.order.data()) return;
  const Source& source = found->second;
  const auto* rows = static_cast<const int64_t*>(source.order.data()) + range.begin;
  for (size_t i = 0; i < source.columns.size(); ++i) {
    const Column& column = source.columns[i];
    const View& view = frame.columns()[i];
    if (!view.data) continue;
    ops_.gather_rows(column.spec_for(view), column.resident.data(), {rows, first}, range.size(), view.data);
  }
}

void Feed::load_staged(Source& source, const Batch& batch, Range range, const Frame& frame) {
  constexpr size_t kAlignment = 256;
  std::vector<size_t> offsets;
  size_t bytes = 0;
  for (size_t i = 0; i < source.columns.size(); ++i) {
    const Column& column = source.columns[i];
    offsets.push_back(bytes);
    if (!frame.columns()[i].data) continue;
    bytes += (static_cast<size_t>(range.size()) * column.row_bytes(frame.columns()[i]) + kAlignment - 1) /
             kAlignment * kAlignment;
  }
  if (bytes > staging_[0].host.bytes() || !staging_[0].uploaded) {
    context_.synchronize();  // waits until the device no longer reads the old buffers
    // Allocates both buffers now, because the next call of load() must not allocate memory (collective.h).
    for (Staging& staging : staging_) {
      staging = {};
      staging = {context_.allocate_host(bytes), context_.allocate(bytes), context_.make_event(),
                 context_.make_event()};
    }
  }
  Staging& staging = staging_[next_];
  next_ = 1 - next_;
  staging.uploaded->synchronize();
  std::vector<void*> to;
  for (size_t i = 0; i < offsets.size(); ++i)
    to.push_back(frame.columns()[i].data ? static_cast<std::byte*>(staging.host.data()) + offsets[i]
                                         : nullptr);
  read_samples([&] { read(source, batch, range, to, frame); });
  context_.upload(staging.device.data(), staging.host.data(), bytes, *staging.consumed, *staging.uploaded);
  for (size_t i = 0; i < source.columns.size(); ++i)
    if (to[i])
      ops_.gather_rows(source.columns[i].spec_for(frame.columns()[i]),
                       static_cast<std::byte*>(staging.device.data()) + offsets[i], {}, range.size(),
                       frame.columns()[i].data);
  staging.consumed->record();
}

/// Reads samples in the format in which they are uploaded.
void Feed::read(const Source& source, const Batch& batch, Range range, std::span<void* const> to,
                const Frame& frame) {
  const BatchSource from = batch.source();
  if (!from.dataset) {
    std::vector<View> views(frame.columns().begin(), frame.columns().end());
    for (size_t i = 0; i < views.size(); ++i) views[i].data = to[i];
    batch.read(range.begin, range.size(), views);
    return;
  }
  const Samples samples =
      from.order.part(static_cast<size_t>(from.first + range.begin), static_cast<size_t>(range.size()));
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i]) continue;
    if (source.columns[i].stored) {
      from.dataset->read_stored(i, samples.rows, to[i]);
    } else {
      from.dataset->read_column(i, samples, to[i]);
    }
  }
}

}  // namespace dtrain
