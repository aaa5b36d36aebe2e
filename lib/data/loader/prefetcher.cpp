#include "data/loader/prefetcher.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/stopwatch.h"
#include "data/columns/column.h"
#include "device/device.h"

namespace dtrain {

namespace {

size_t sample_bytes(const Dataset& dataset) {
  size_t bytes = 0;
  for (const TensorSpec& spec : dataset.columns())
    bytes += static_cast<size_t>(spec.shape.elements()) * bytes_of(spec.dtype);
  return bytes;
}

/// Runs `work` and returns the time that the calling thread spent in it.
template <class Work>
ReadSeconds timed(Work work) {
  ReadSeconds& seconds = read_seconds_of_thread();
  seconds = {};
  double all = 0;
  {
    const Stopwatch stopwatch(all);
    work();
  }
  seconds.rest = std::max(0.0, all - seconds.files - seconds.decoding);
  return seconds;
}

/// Returns the number of samples in a block. Blocks are large enough that the time for distributing them to
/// threads is negligible compared to the time for reading them.
int64_t samples_in_block(const Dataset& dataset) {
  constexpr size_t kBlockBytes = size_t{256} << 10;
  return static_cast<int64_t>(std::max<size_t>(1, kBlockBytes / std::max<size_t>(1, sample_bytes(dataset))));
}

/// Returns the number of threads: at most the number of blocks that can be read at the same time, because
/// further threads would have no work.
int64_t threads_of(const Dataset& dataset, const LoaderOptions& options) {
  const auto cores = static_cast<int64_t>(available_cores().size());
  const int64_t block = samples_in_block(dataset), batch = std::min(options.batch_size, dataset.size());
  const int64_t blocks = options.prefetch * ((batch + block - 1) / block);
  return std::clamp<int64_t>(options.threads > 0 ? options.threads : cores, 1, std::max<int64_t>(1, blocks));
}

}  // namespace

/// Memory for one batch, which is reused for later batches.
class Prefetcher::Slot final : public Batch {
 public:
  Slot(const std::vector<TensorSpec>& columns, int64_t batch_size) {
    for (const TensorSpec& spec : columns) {
      View view{nullptr, spec.shape.prepended(batch_size), spec.dtype};
      memory_.push_back(allocate_bytes(view.bytes()));
      view.data = memory_.back().get();
      views_.push_back(std::move(view));
    }
  }

  /// Prepares the slot for a batch of `size` samples. `read` is the number of these samples that will be
  /// read.
  void begin(int64_t size, int64_t read) {
    size_ = size;
    unread_ = read;
    error_ = nullptr;
    for (View& view : views_) view.shape[0] = size;
  }
  /// Reads `samples` into consecutive rows, beginning with row `first`. The caller does not hold the lock.
  void fill(const Dataset& dataset, int64_t first, const Samples& samples) const {
    dataset.read(samples, views_of(first, static_cast<int64_t>(samples.size())));
  }
  /// Records that `count` rows, beginning with row `first`, have been read or have failed with `error`. If
  /// several blocks fail, keeps only the error of the block with the smallest `first`.
  void finish(int64_t first, int64_t count, std::exception_ptr error) {
    unread_ -= count;
    if (!error || (error_ && error_at_ < first)) return;
    error_ = std::move(error);
    error_at_ = first;
  }
  bool is_read() const { return unread_ == 0; }
  const std::exception_ptr& error() const { return error_; }

  int64_t size() const override { return size_; }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    if (count == 0) return;
    const std::vector<View> views = views_of(first, count);
    for (size_t i = 0; i < views.size(); ++i)
      if (dst[i].data) std::memcpy(dst[i].data, views[i].data, views[i].bytes());
  }

 private:
  std::vector<View> views_of(int64_t first, int64_t count) const {
    std::vector<View> views = views_;
    for (View& view : views) {
      view.shape[0] = 1;
      view.data = view.as<std::byte>() + static_cast<size_t>(first) * view.bytes();
      view.shape[0] = count;
    }
    return views;
  }

  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<View> views_;
  int64_t size_ = 0, unread_ = 0;
  std::exception_ptr error_;
  int64_t error_at_ = 0;
};

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      batch_size_(options.batch_size),
      depth_(options.prefetch),
      block_size_(samples_in_block(*dataset_)),
      rows_(options.rows),
      pool_("reading ahead", threads_of(*dataset_, options)) {}

Prefetcher::~Prefetcher() {
  pool_.cancel();
}

ReadAheadMemory Prefetcher::memory(const Dataset& dataset, const LoaderOptions& options) {
  const int64_t block = std::min(samples_in_block(dataset), std::min(options.batch_size, dataset.size()));
  return {static_cast<size_t>(options.prefetch + 2) * sample_bytes(dataset),
          static_cast<size_t>(threads_of(dataset, options)) * dataset.working_bytes(block)};
}

void Prefetcher::begin(const Samples& order, int64_t first_step) {
  pool_.cancel();  // stop reading in the previous order
  // The memory is allocated here and not in the constructor because memory plans that are made after the
  // constructor and before the first call of begin() count this memory as free.
  while (static_cast<int64_t>(slots_.size()) < depth_ + 2)
    slots_.push_back(std::make_shared<Slot>(dataset_->columns(), std::min(batch_size_, dataset_->size())));
  order_ = order;
  steps_ = (static_cast<int64_t>(order.size()) + batch_size_ - 1) / batch_size_;
  given_ = first_step;
  for (int64_t step = first_step; step < first_step + depth_; ++step) read_ahead(step);
}

std::shared_ptr<const Batch> Prefetcher::next() {
  if (given_ >= steps_) return nullptr;
  const auto slot = slots_[static_cast<size_t>(given_) % slots_.size()];
  {
    std::unique_lock lock(mutex_);
    was_read_.wait(lock, [&] { return slot->is_read(); });
    if (slot->error()) std::rethrow_exception(slot->error());
  }
  read_ahead(given_++ + depth_);
  return slot;
}

ReadSeconds Prefetcher::read_seconds() {
  const std::lock_guard lock(mutex_);
  return spent_;
}

/// Submits the blocks of batch `step` to the pool. Does nothing if the epoch has no such batch.
void Prefetcher::read_ahead(int64_t step) {
  if (step >= steps_) return;
  const int64_t first = step * batch_size_;
  const int64_t size = std::min(batch_size_, static_cast<int64_t>(order_.size()) - first);
  Slot& slot = *slots_[static_cast<size_t>(step) % slots_.size()];
  const auto ranges = rows_ ? rows_(size) : std::vector{std::pair<int64_t, int64_t>{0, size}};
  int64_t rows = 0;
  for (const auto& [begin, end] : ranges) rows += end - begin;
  slot.begin(size, rows);
  for (const auto& [begin, end] : ranges)
    for (int64_t at = begin; at < end; at += block_size_) {
      const int64_t count = std::min(block_size_, end - at);
      pool_.submit([this, &slot, at,
                    samples = order_.part(static_cast<size_t>(first + at), static_cast<size_t>(count))] {
        read_block(slot, at, samples);
      });
    }
}

/// Reads a block of samples into a slot. Runs on a thread of the pool.
void Prefetcher::read_block(Slot& slot, int64_t first, const Samples& samples) {
  std::exception_ptr error;
  const ReadSeconds spent = timed([&] {
    try {
      slot.fill(*dataset_, first, samples);
    } catch (...) {
      error = std::current_exception();
    }
  });
  const std::lock_guard lock(mutex_);
  spent_ += spent;
  slot.finish(first, static_cast<int64_t>(samples.size()), std::move(error));
  if (slot.is_read()) was_read_.notify_one();
}

}  // namespace dtrain
