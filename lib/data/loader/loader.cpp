#include "data/loader/loader.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "data/columns/column.h"
#include "data/loader/prefetcher.h"
#include "data/loader/shuffle.h"

namespace dtrain {

namespace {

/// A batch whose samples are gathered from the data set when the batch is read.
class DirectBatch final : public Batch {
 public:
  DirectBatch(const BatchSource& source, int64_t size)
      : source_(source),
        samples_(source.order.part(static_cast<size_t>(source.first), static_cast<size_t>(size))) {}
  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    source_.dataset->read(samples_.part(static_cast<size_t>(first), static_cast<size_t>(count)), dst);
  }
  BatchSource source() const override { return source_; }

 private:
  BatchSource source_;
  Samples samples_;
};

/// A batch that is truncated: only the first positions of each sample are returned.
class CutBatch final : public Batch {
 public:
  CutBatch(std::shared_ptr<const Batch> whole, const std::vector<TensorSpec>& columns, int64_t length)
      : whole_(std::move(whole)), columns_(columns), length_(length) {}

  int64_t size() const override { return whole_->size(); }
  int64_t length() const override { return length_; }
  BatchSource source() const override { return whole_->source(); }

  /// Reads the samples, and copies only the first positions of the columns that are truncated. The data set
  /// can only read whole rows of these columns, so a few rows at a time are read into a buffer.
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    if (count == 0) return;
    constexpr size_t kBufferBytes = size_t{256} << 10;
    size_t row_bytes = 1;
    for (size_t i = 0; i < dst.size(); ++i)
      if (is_cut(i, dst[i])) row_bytes += bytes_of_row(i);
    const int64_t at_once = std::clamp<int64_t>(static_cast<int64_t>(kBufferBytes / row_bytes), 1, count);
    std::vector<std::vector<std::byte>> buffers(dst.size());
    for (size_t i = 0; i < dst.size(); ++i)
      if (is_cut(i, dst[i])) buffers[i].resize(static_cast<size_t>(at_once) * bytes_of_row(i));
    for (int64_t at = 0; at < count; at += at_once)
      read_some(first + at, at, std::min(at_once, count - at), dst, buffers);
  }

 private:
  size_t bytes_of_row(size_t column) const {
    const TensorSpec& spec = columns_[column];
    return static_cast<size_t>(spec.shape.elements()) * bytes_of(spec.dtype);
  }
  bool is_cut(size_t column, const View& view) const {
    return view.data && view.elements() < columns_[column].shape.elements() * view.shape[0];
  }

  /// Reads the samples [first, first + count) of the batch into the rows [at, at + count) of `dst`.
  void read_some(int64_t first, int64_t at, int64_t count, std::span<const View> dst,
                 std::vector<std::vector<std::byte>>& buffers) const {
    std::vector<View> views(dst.begin(), dst.end());
    for (size_t i = 0; i < dst.size(); ++i) {
      if (!dst[i].data) continue;
      views[i].shape[0] = count;
      if (buffers[i].empty()) {
        views[i].data = dst[i].as<std::byte>() +
                        static_cast<size_t>(at) * (views[i].bytes() / static_cast<size_t>(count));
      } else {
        views[i] = {buffers[i].data(), columns_[i].shape.prepended(count), dst[i].dtype};
      }
    }
    whole_->read(first, count, views);
    for (size_t i = 0; i < dst.size(); ++i) {
      if (buffers[i].empty()) continue;
      const size_t bytes = dst[i].bytes() / static_cast<size_t>(dst[i].shape[0]);
      for (int64_t row = 0; row < count; ++row)
        std::memcpy(dst[i].as<std::byte>() + static_cast<size_t>(at + row) * bytes,
                    buffers[i].data() + static_cast<size_t>(row) * bytes_of_row(i), bytes);
    }
  }

  std::shared_ptr<const Batch> whole_;
  const std::vector<TensorSpec>& columns_;  // specs of the columns before truncation
  int64_t length_;
};

/// A batch together with the sums of its row weights.
class WeighedBatch final : public Batch {
 public:
  WeighedBatch(std::shared_ptr<const Batch> batch, std::vector<double> sums)
      : batch_(std::move(batch)), sums_(std::move(sums)) {}

  int64_t size() const override { return batch_->size(); }
  int64_t length() const override { return batch_->length(); }
  BatchSource source() const override { return batch_->source(); }
  std::span<const double> weight_sums() const override { return sums_; }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    batch_->read(first, count, dst);
  }

 private:
  std::shared_ptr<const Batch> batch_;
  std::vector<double> sums_;
};

bool reads_ahead(const Dataset& dataset, const LoaderOptions& options, bool in_memory) {
  return options.prefetch > 0 && (!in_memory || dataset.is_costly());
}

}  // namespace

ReadAheadMemory& ReadAheadMemory::operator+=(const ReadAheadMemory& other) {
  for_each_sample += other.for_each_sample;
  for_threads += other.for_threads;
  return *this;
}

ReadAheadMemory read_ahead_memory(const Dataset& dataset, const LoaderOptions& options, bool in_memory) {
  return reads_ahead(dataset, options, in_memory) ? Prefetcher::memory(dataset, options) : ReadAheadMemory{};
}

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
      : dataset_(std::move(dataset)), options_(options) {
    if (options.batch_size < 1) throw std::logic_error("the batch size must be at least 1");
    if (reads_ahead(*dataset_, options, dataset_->in_memory())) prefetcher_.emplace(dataset_, options);
  }

  int64_t samples() const { return dataset_->size(); }
  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }
  ReadSeconds read_seconds() { return prefetcher_ ? prefetcher_->read_seconds() : ReadSeconds{}; }
  int64_t steps() const { return (samples() + options_.batch_size - 1) / options_.batch_size; }

  void begin(int64_t epoch, int64_t first_step) {
    if (epoch != epoch_ && (options_.shuffle || rows_.empty())) {
      if (prefetcher_) prefetcher_->begin({}, 0);  // stop reading in the previous order
      rows_ = make_order(epoch);
    }
    epoch_ = epoch;
    step_ = first_step;
    if (prefetcher_) prefetcher_->begin(order(), first_step);
  }

  Samples samples_of(int64_t step) const {
    const int64_t first = std::min(step * options_.batch_size, static_cast<int64_t>(rows_.size()));
    const int64_t size = std::min(options_.batch_size, static_cast<int64_t>(rows_.size()) - first);
    return order().part(static_cast<size_t>(first), static_cast<size_t>(size));
  }

  std::shared_ptr<const Batch> next() {
    const int64_t first = step_ * options_.batch_size, left = static_cast<int64_t>(rows_.size()) - first;
    if (step_ >= steps() || left <= 0) return nullptr;
    std::shared_ptr<const Batch> batch = next_whole(first, std::min(options_.batch_size, left));
    ++step_;
    const auto samples =
        std::span(rows_).subspan(static_cast<size_t>(first), static_cast<size_t>(batch->size()));
    if (options_.lengths) batch = cut(std::move(batch), options_.lengths->longest(samples));
    if (!options_.weights) return batch;
    return std::make_shared<WeighedBatch>(std::move(batch), options_.weights->sum(samples));
  }

 private:
  std::shared_ptr<const Batch> next_whole(int64_t first, int64_t size) {
    if (prefetcher_) return prefetcher_->next();
    return std::make_shared<DirectBatch>(
        BatchSource{dataset_.get(), order(), options_.shuffle ? epoch_ : 0, first}, size);
  }

  std::shared_ptr<const Batch> cut(std::shared_ptr<const Batch> batch, int64_t length) const {
    if (length == options_.lengths->positions) return batch;
    return std::make_shared<CutBatch>(std::move(batch), dataset_->columns(), length);
  }

  Samples order() const { return {rows_, options_.seed, epoch_}; }

  std::vector<int64_t> make_order(int64_t epoch) const {
    const auto fail = [&] {
      throw Error(fmt::format("there is not enough memory to store the order of {} samples", samples()));
    };
    try {
      if (!options_.shuffle) return row_numbers(0, samples());
      if (options_.lengths)
        return order_by_length(*options_.lengths, options_.batch_size, options_.seed, epoch);
      return shuffled_order(samples(), options_.seed, epoch);
    } catch (const std::bad_alloc&) {
      fail();
    } catch (const std::length_error&) {
      fail();
    }
    return {};
  }

  std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  std::vector<int64_t> rows_;  // samples in the order of the epoch
  int64_t epoch_ = -1, step_ = 0;
  std::optional<Prefetcher> prefetcher_;  // must be the last member, because its threads use rows_
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(dataset), options)) {}
Loader::~Loader() = default;

int64_t Loader::steps_per_epoch() const {
  return impl_->steps();
}
int64_t Loader::samples() const {
  return impl_->samples();
}
const Dataset& Loader::dataset() const {
  return impl_->dataset();
}
const SampleLengths* Loader::lengths() const {
  return impl_->options().lengths.get();
}
ReadAheadMemory Loader::read_ahead_memory() const {
  return dtrain::read_ahead_memory(dataset(), impl_->options(), dataset().in_memory());
}
ReadSeconds Loader::read_seconds() const {
  return impl_->read_seconds();
}
void Loader::begin(int64_t epoch, int64_t first_step) {
  impl_->begin(epoch, first_step);
}
Samples Loader::samples_of(int64_t step) const {
  return impl_->samples_of(step);
}
std::shared_ptr<const Batch> Loader::next() {
  return impl_->next();
}

}  // namespace dtrain
