#include "data/loader/prefetcher.h"

#include <algorithm>
#include <cstring>

#include "base/stopwatch.h"
#include "base/threads.h"
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

/// Runs `work` and returns how much time the calling thread spent in it.
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

/// Returns a block size so large that distributing blocks costs almost nothing compared to reading them.
int64_t samples_in_block(const Dataset& dataset) {
  constexpr size_t kBlockBytes = size_t{256} << 10;
  return static_cast<int64_t>(std::max<size_t>(1, kBlockBytes / std::max<size_t>(1, sample_bytes(dataset))));
}

/// Returns the number of threads: at most the number of blocks that can be read at the same time.
int64_t threads_of(const Dataset& dataset, const LoaderOptions& options) {
  const auto cores = static_cast<int64_t>(available_cores().size());
  const int64_t block = samples_in_block(dataset), batch = std::min(options.batch_size, dataset.size());
  const int64_t blocks = options.prefetch * ((batch + block - 1) / block);
  return std::clamp<int64_t>(options.threads > 0 ? options.threads : cores, 1, std::max<int64_t>(1, blocks));
}

}  // namespace

/// A part of a batch that one thread reads.
struct Prefetcher::Block {
  Slot* slot = nullptr;
  int64_t first = 0;  // in the batch
  Samples samples;
};

/// Reusable memory for one batch.
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

  /// Prepares for a batch of `size` samples.
  void begin(int64_t size) {
    size_ = unread_ = size;
    error_ = nullptr;
    for (View& view : views_) view.shape[0] = size;
  }
  /// Reads the samples of `block`. Called without the lock.
  void fill(const Dataset& dataset, const Block& block) const {
    dataset.read(block.samples, views_of(block.first, static_cast<int64_t>(block.samples.size())));
  }
  /// Marks the block as read, or as failed with `error`. Of several errors, keeps that of the first block in
  /// the batch.
  void finish(const Block& block, std::exception_ptr error) {
    unread_ -= static_cast<int64_t>(block.samples.size());
    if (!error || (error_ && error_at_ < block.first)) return;
    error_ = std::move(error);
    error_at_ = block.first;
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
      block_size_(samples_in_block(*dataset_)) {
  const int64_t wanted = threads_of(*dataset_, options);
  threads_.reserve(static_cast<size_t>(wanted));
  while (static_cast<int64_t>(threads_.size()) < wanted && start_another()) continue;
}

/// Returns false if the system allows no more threads; fewer threads are only slower. Throws if there is none
/// yet.
bool Prefetcher::start_another() {
  try {
    threads_.push_back(start_thread("reading ahead", [this] { work(); }));
    return true;
  } catch (...) {
    if (threads_.empty()) throw;
    return false;
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  to_read_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

ReadAheadMemory Prefetcher::memory(const Dataset& dataset, const LoaderOptions& options) {
  const int64_t block = std::min(samples_in_block(dataset), std::min(options.batch_size, dataset.size()));
  return {static_cast<size_t>(options.prefetch + 2) * sample_bytes(dataset),
          static_cast<size_t>(threads_of(dataset, options)) * dataset.working_bytes(block)};
}

void Prefetcher::begin(const Samples& order, int64_t first_step) {
  std::unique_lock lock(mutex_);
  steps_ = 0;  // stop reading the old order
  was_read_.wait(lock, [&] { return reading_ == 0; });
  // Allocates memory here and not earlier, because memory plans made before may count it as free.
  while (static_cast<int64_t>(slots_.size()) < depth_ + 2)
    slots_.push_back(std::make_shared<Slot>(dataset_->columns(), std::min(batch_size_, dataset_->size())));
  order_ = order;
  steps_ = (static_cast<int64_t>(order.size()) + batch_size_ - 1) / batch_size_;
  taken_ = given_ = first_step;
  taken_samples_ = 0;
  to_read_.notify_one();
}

std::shared_ptr<const Batch> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (given_ >= steps_) return nullptr;
  was_read_.wait(lock, [&] { return given_ < taken_ && slot_of(given_).is_read(); });
  if (slot_of(given_).error()) std::rethrow_exception(slot_of(given_).error());
  const auto slot = slots_[static_cast<size_t>(given_++) % slots_.size()];
  to_read_.notify_one();
  return slot;
}

ReadSeconds Prefetcher::read_seconds() {
  const std::lock_guard lock(mutex_);
  return spent_;
}

Prefetcher::Block Prefetcher::take_block() {
  const int64_t first = taken_ * batch_size_;
  const int64_t size = std::min(batch_size_, static_cast<int64_t>(order_.size()) - first);
  Slot& slot = slot_of(taken_);
  if (taken_samples_ == 0) slot.begin(size);
  const int64_t count = std::min(block_size_, size - taken_samples_);
  Block block{&slot, taken_samples_,
              order_.part(static_cast<size_t>(first + taken_samples_), static_cast<size_t>(count))};
  taken_samples_ += count;
  if (taken_samples_ == size) {
    ++taken_;
    taken_samples_ = 0;
  }
  return block;
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    to_read_.wait(lock, [&] { return stop_ || something_to_read(); });
    if (stop_) return;
    const Block block = take_block();
    // Each thread wakes another one if there is more to read, so that little work wakes few threads.
    if (something_to_read()) to_read_.notify_one();
    ++reading_;
    lock.unlock();
    std::exception_ptr error;
    const ReadSeconds spent = timed([&] {
      try {
        block.slot->fill(*dataset_, block);
      } catch (...) {
        error = std::current_exception();
      }
    });
    lock.lock();
    spent_ += spent;
    --reading_;
    block.slot->finish(block, std::move(error));
    if (block.slot->is_read() || reading_ == 0) was_read_.notify_one();
  }
}

}  // namespace dtrain
