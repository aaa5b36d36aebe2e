#include "data/loader/loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/loader/shuffle.h"

namespace dtrain::test {

namespace {

/// A data set in which sample i has the value i. Reading the sample `bad` fails.
class Numbers final : public Dataset {
 public:
  Numbers(int64_t size, bool in_memory, int64_t bad = -1) : size_(size), in_memory_(in_memory), bad_(bad) {}
  int64_t size() const override { return size_; }
  const std::vector<TensorSpec>& columns() const override { return columns_; }
  void read(const Samples& samples, std::span<const View> dst) const override {
    read_column(0, samples, dst[0].data);
  }
  void read_column(size_t, const Samples& samples, void* dst) const override {
    const auto rows = samples.rows;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == bad_) throw UserError("sample " + std::to_string(bad_) + " is damaged");
      static_cast<int32_t*>(dst)[i] = static_cast<int32_t>(rows[i]);
    }
    reads += static_cast<int64_t>(rows.size());
  }
  bool in_memory() const override { return in_memory_; }

  mutable std::atomic<int64_t> reads = 0;

 private:
  int64_t size_;
  bool in_memory_;
  int64_t bad_;
  std::vector<TensorSpec> columns_{{"n", {}, DType::int32}};
};

std::vector<int> contents(const Batch& batch, int64_t first, int64_t count) {
  std::vector<int> values(static_cast<size_t>(count));
  const View view{values.data(), {count}, DType::int32};
  batch.read(first, count, {&view, 1});
  return values;
}

std::vector<std::vector<int>> rest_of_epoch(Loader& loader) {
  std::vector<std::vector<int>> all;
  while (const auto batch = loader.next()) all.push_back(contents(*batch, 0, batch->size()));
  return all;
}

struct Way {
  bool in_memory;
  int64_t prefetch;
  int threads;
};
constexpr Way kWays[] = {{true, 2, 2}, {false, 0, 2}, {false, 1, 1}, {false, 3, 2}, {false, 2, 7}};

}  // namespace

TEST_CASE("an epoch contains each sample once, and the last batch the remaining samples") {
  for (const auto& [in_memory, prefetch, threads] : kWays) {
    Loader loader(std::make_shared<Numbers>(23, in_memory),
                  {.batch_size = 5, .shuffle = true, .seed = 1, .prefetch = prefetch, .threads = threads});
    CHECK(loader.steps_per_epoch() == 5);
    CHECK(loader.samples() == 23);
    CHECK(loader.next() == nullptr);
    loader.begin(0, 0);
    const auto batches = rest_of_epoch(loader);
    REQUIRE(batches.size() == 5);
    CHECK(batches[4].size() == 3);
    std::set<int> seen;
    for (const auto& batch : batches) seen.insert(batch.begin(), batch.end());
    CHECK(seen.size() == 23);
    CHECK(loader.next() == nullptr);
  }
}

TEST_CASE("only the rows of this process are prefetched") {
  // The damaged sample is read only by another process.
  const auto data = std::make_shared<Numbers>(23, false, 9);
  Loader loader(data, {.batch_size = 10, .prefetch = 2, .threads = 2, .rows = [](int64_t size) {
                         using Rows = std::vector<std::pair<int64_t, int64_t>>;
                         return size < 10 ? Rows{{0, 1}} : Rows{{0, 2}, {4, 8}};
                       }});
  loader.begin(0, 0);
  for (const int64_t size : {10, 10, 3}) {
    const auto batch = loader.next();
    REQUIRE(batch);
    CHECK(batch->size() == size);
    if (size < 10) continue;
    const int first = contents(*batch, 0, 1)[0];
    CHECK(contents(*batch, 4, 4) == std::vector<int>{first + 4, first + 5, first + 6, first + 7});
  }
  CHECK(loader.next() == nullptr);
  CHECK(data->reads == 2 * 6 + 1);
}

TEST_CASE("batches are a function of seed, epoch and step") {
  Loader reference(std::make_shared<Numbers>(40, true),
                   {.batch_size = 7, .shuffle = true, .seed = 3, .prefetch = 2});
  std::vector<std::vector<std::vector<int>>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    reference.begin(epoch, 0);
    epochs.push_back(rest_of_epoch(reference));
  }
  CHECK(epochs[0] != epochs[1]);
  for (const auto& [in_memory, prefetch, threads] : kWays) {
    Loader loader(std::make_shared<Numbers>(40, in_memory),
                  {.batch_size = 7, .shuffle = true, .seed = 3, .prefetch = prefetch, .threads = threads});
    for (const int epoch : {2, 0, 1, 1}) {
      for (const int64_t step : {0, 4, 6}) {
        const auto& whole = epochs[static_cast<size_t>(epoch)];
        loader.begin(epoch, step);
        loader.next();  // begin() in the middle of an epoch drops prefetched batches
        loader.begin(epoch, step);
        CHECK(rest_of_epoch(loader) == std::vector<std::vector<int>>(whole.begin() + step, whole.end()));
      }
    }
  }
  Loader other(std::make_shared<Numbers>(40, true),
               {.batch_size = 7, .shuffle = true, .seed = 4, .prefetch = 2});
  other.begin(0, 0);
  CHECK(rest_of_epoch(other) != epochs[0]);
}

TEST_CASE("without shuffling, samples keep the file's order") {
  Loader loader(std::make_shared<Numbers>(5, false), {.batch_size = 3, .seed = 3, .prefetch = 2});
  for (const int epoch : {0, 1}) {
    loader.begin(epoch, 0);
    CHECK(rest_of_epoch(loader) == std::vector<std::vector<int>>{{0, 1, 2}, {3, 4}});
  }
}

TEST_CASE("permutations are uniformly distributed") {
  std::vector<int> counts(6, 0);
  for (int epoch = 0; epoch < 6000; ++epoch) {
    const auto order = shuffled_order(3, 9, epoch);
    ++counts[static_cast<size_t>(order[0] * 2 + (order[1] > order[2] ? 1 : 0))];
  }
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);  // five standard deviations
}

TEST_CASE("parts of a batch and of the previous batch can be read") {
  for (const auto& [in_memory, prefetch, threads] : kWays) {
    Loader loader(std::make_shared<Numbers>(100, in_memory),
                  {.batch_size = 10, .prefetch = prefetch, .threads = threads});
    loader.begin(0, 0);
    auto before = loader.next();
    for (int step = 1; const auto batch = loader.next(); ++step) {
      CHECK(contents(*batch, 3, 2) == std::vector<int>{10 * step + 3, 10 * step + 4});
      CHECK(contents(*before, 0, 1) == std::vector<int>{10 * step - 10});
      CHECK(contents(*batch, 10, 0).empty());
      before = batch;
    }
  }
}

TEST_CASE(
    "after an error of read-ahead, next() first returns the earlier batches, then throws in every call") {
  for (const auto& [prefetch, threads] : {std::pair{1, 1}, {4, 1}, {4, 3}}) {
    Loader loader(std::make_shared<Numbers>(50, false, 25),
                  {.batch_size = 10, .prefetch = prefetch, .threads = threads});
    loader.begin(0, 0);
    CHECK(loader.next()->size() == 10);
    CHECK(loader.next()->size() == 10);
    CHECK_THROWS_WITH_AS(loader.next(), "sample 25 is damaged", UserError);
    CHECK_THROWS_AS(loader.next(), UserError);
    loader.begin(0, 3);
    CHECK(contents(*loader.next(), 0, 1) == std::vector<int>{30});
  }
}

TEST_CASE("read-ahead does not exceed `prefetch` batches") {
  const auto numbers = std::make_shared<Numbers>(1000, false);
  Loader loader(numbers, {.batch_size = 10, .prefetch = 2, .threads = 3});
  loader.begin(0, 0);
  for (int step = 0; step < 50; ++step) {
    loader.next();
    CHECK(numbers->reads <= 10 * (step + 1 + 2));
  }
}

TEST_CASE("read_seconds() counts only the time of the read-ahead threads") {
  for (const Way& way : kWays) {
    const auto numbers = std::make_shared<Numbers>(1000, way.in_memory);
    Loader loader(numbers, {.batch_size = 10, .prefetch = way.prefetch, .threads = way.threads});
    loader.begin(0, 0);
    rest_of_epoch(loader);
    const bool ahead = !way.in_memory && way.prefetch > 0;
    CHECK((loader.read_seconds().rest > 0) == ahead);
    // No time is counted as reading files or decoding images.
    CHECK(loader.read_seconds().total() == loader.read_seconds().rest);
  }
}

}  // namespace dtrain::test
