#include "data/loader.h"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "data/column.h"
#include "data/prefetcher.h"
#include "data/shuffle.h"

namespace dtrain {

namespace {

/// Samples that whoever wants them gathers from the data set.
class DirectBatch final : public Batch {
 public:
  DirectBatch(const BatchSource& source, std::span<const int64_t> rows) : source_(source), rows_(rows) {}
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    source_.dataset->read(rows_.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), dst);
  }
  BatchSource source() const override { return source_; }

 private:
  BatchSource source_;
  std::span<const int64_t> rows_;
};

}  // namespace

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, int64_t batch_size, bool shuffle, uint64_t seed,
       int64_t prefetch)
      : dataset_(std::move(dataset)), batch_size_(batch_size), shuffle_(shuffle), seed_(seed) {
    if (batch_size < 1) throw std::logic_error("a batch holds at least one sample");
    if (prefetch > 0 && !dataset_->in_memory()) prefetcher_.emplace(dataset_, batch_size, prefetch);
  }

  int64_t samples() const { return dataset_->size(); }
  const Dataset& dataset() const { return *dataset_; }
  int64_t steps() const { return (samples() + batch_size_ - 1) / batch_size_; }

  void begin(int64_t epoch, int64_t first_step) {
    if (epoch != epoch_ && (shuffle_ || order_.empty())) {
      if (prefetcher_) prefetcher_->begin({}, 0);  // no more reading in the order that goes
      order_ = make_order(epoch);
    }
    epoch_ = epoch;
    step_ = first_step;
    if (prefetcher_) prefetcher_->begin(order_, first_step);
  }

  std::shared_ptr<const Batch> next() {
    if (prefetcher_) return prefetcher_->next();
    const auto first = static_cast<size_t>(step_ * batch_size_);
    if (step_ >= steps() || first >= order_.size()) return nullptr;
    ++step_;
    const auto count = std::min(static_cast<size_t>(batch_size_), order_.size() - first);
    const std::span<const int64_t> order = order_;
    return std::make_shared<DirectBatch>(
        BatchSource{dataset_.get(), order, shuffle_ ? epoch_ : 0, static_cast<int64_t>(first)},
        order.subspan(first, count));
  }

 private:
  std::vector<int64_t> make_order(int64_t epoch) const {
    const auto fail = [&] {
      throw Error(fmt::format("there is not enough memory for the order of {} samples", samples()));
    };
    try {
      return shuffle_ ? shuffled_order(samples(), seed_, epoch) : row_numbers(0, samples());
    } catch (const std::bad_alloc&) {
      fail();
    } catch (const std::length_error&) {
      fail();
    }
    return {};
  }

  std::shared_ptr<const Dataset> dataset_;
  int64_t batch_size_;
  bool shuffle_;
  uint64_t seed_;
  std::vector<int64_t> order_;
  int64_t epoch_ = -1, step_ = 0;
  std::optional<Prefetcher> prefetcher_;  // the last member: it reads by the order
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, int64_t batch_size, bool shuffle, uint64_t seed,
               int64_t prefetch)
    : impl_(std::make_unique<Impl>(std::move(dataset), batch_size, shuffle, seed, prefetch)) {}
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
void Loader::begin(int64_t epoch, int64_t first_step) {
  impl_->begin(epoch, first_step);
}
std::shared_ptr<const Batch> Loader::next() {
  return impl_->next();
}

}  // namespace dtrain
