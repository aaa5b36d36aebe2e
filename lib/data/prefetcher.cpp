#include "data/prefetcher.h"

#include <algorithm>
#include <cstring>

#include "base/threads.h"
#include "data/column.h"

namespace dtrain {

/// Memory for one batch, used again and again.
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

  void fill(const Dataset& dataset, std::span<const int64_t> rows) {
    size_ = static_cast<int64_t>(rows.size());
    for (View& view : views_) view.shape[0] = size_;
    dataset.read(rows, views_);
  }

  int64_t size() const override { return size_; }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    for (size_t i = 0; i < views_.size() && count > 0; ++i) {
      const size_t row = views_[i].bytes() / static_cast<size_t>(size_);
      std::memcpy(dst[i].data, views_[i].as<std::byte>() + static_cast<size_t>(first) * row,
                  static_cast<size_t>(count) * row);
    }
  }

 private:
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<View> views_;
  int64_t size_ = 0;
};

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, int64_t batch_size, int64_t depth)
    : dataset_(std::move(dataset)), batch_size_(batch_size), depth_(depth) {
  const int64_t most = std::min(batch_size, dataset_->size());
  for (int64_t i = 0; i < depth + 2; ++i) slots_.push_back(std::make_shared<Slot>(dataset_->columns(), most));
  thread_ = start_thread("reading ahead", [this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::begin(std::span<const int64_t> rows, int64_t first_step) {
  std::unique_lock lock(mutex_);
  steps_ = 0;  // nothing more to read of the old order
  changed_.wait(lock, [&] { return !reading_; });
  rows_ = rows;
  steps_ = (static_cast<int64_t>(rows.size()) + batch_size_ - 1) / batch_size_;
  read_ = given_ = first_step;
  error_ = nullptr;
  changed_.notify_all();
}

std::shared_ptr<const Batch> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (given_ >= steps_) return nullptr;
  changed_.wait(lock, [&] { return read_ > given_ || error_; });
  if (read_ == given_) std::rethrow_exception(error_);
  const auto slot = slots_[static_cast<size_t>(given_++) % slots_.size()];
  changed_.notify_all();
  return slot;
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || something_to_read(); });
    if (stop_) return;
    const auto first = static_cast<size_t>(read_ * batch_size_);
    const auto rows = rows_.subspan(first, std::min(static_cast<size_t>(batch_size_), rows_.size() - first));
    Slot& slot = *slots_[static_cast<size_t>(read_) % slots_.size()];
    std::exception_ptr error;
    reading_ = true;
    lock.unlock();
    try {
      slot.fill(*dataset_, rows);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    reading_ = false;
    if (error)
      error_ = error;
    else
      ++read_;
    changed_.notify_all();
  }
}

}  // namespace dtrain
