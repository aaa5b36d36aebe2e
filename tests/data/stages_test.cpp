// Column stages that are random, slow or failing.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/loader/loader.h"
#include "data/splits/split_dataset.h"
#include "data/stages/affine.h"

namespace dtrain::test {

namespace {

using Row = std::array<float, 3>;

/// Converts a number to three numbers, and adds a random number drawn from the sample's key to each of them.
class Noise final : public ColumnStage {
 public:
  explicit Noise(const TensorSpec& input) : ColumnStage(input, {input.name, {3}, DType::float32}) {}
  void run(const StageInput& rows, void* dst) const override {
    auto* out = static_cast<float*>(dst);
    for (size_t i = 0; i < rows.size(); ++i)
      for (const float noise : of(rows.samples.key(i)))
        *out++ = static_cast<const float*>(rows.base)[rows.places[i]] + noise;
  }
  bool is_random() const override { return true; }

  static Row of(const SampleKey& key) {
    const Philox::Block first = key.draw(kStream, 0), second = key.draw(kStream, 1);
    return {uniform01(first.v[0]), uniform01(first.v[3]), uniform01(second.v[0])};
  }

 private:
  static constexpr uint32_t kStream = 7;
};

/// A stage whose rows contain `floats` copies of the sample's index. The function `make` may be slow or throw
/// an exception.
class Made final : public ColumnStage {
 public:
  using Make = std::function<void(const SampleKey&)>;
  Made(const TensorSpec& input, int64_t floats, Make make)
      : ColumnStage(input, {input.name, {floats}, DType::float32}), make_(std::move(make)) {}
  void run(const StageInput& rows, void* dst) const override {
    const int64_t floats = output().shape.elements();
    for (size_t i = 0; i < rows.size(); ++i) {
      make_(rows.samples.key(i));
      std::fill_n(static_cast<float*>(dst) + static_cast<int64_t>(i) * floats, floats,
                  static_cast<const float*>(rows.base)[rows.places[i]]);
    }
  }

 private:
  Make make_;
};

/// A column with the numbers 0, 1, 2, ... It offers no contiguous view of its rows, like a column that is
/// read from a file.
class ByRow final : public Column {
 public:
  explicit ByRow(int64_t size) : size_(size) {}
  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return size_; }
  bool in_memory() const override { return false; }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    std::copy(rows.begin(), rows.end(), static_cast<float*>(dst));
  }

 private:
  TensorSpec spec_{"numbers", {}, DType::float32};
  int64_t size_;
};

std::shared_ptr<const Column> numbers(int64_t size, bool by_row) {
  if (by_row) return std::make_shared<ByRow>(size);
  const auto data = allocate_bytes(static_cast<size_t>(size) * sizeof(float));
  std::iota(reinterpret_cast<float*>(data.get()), reinterpret_cast<float*>(data.get()) + size, 0.0f);
  return std::make_shared<MemoryColumn>(TensorSpec{"numbers", {}, DType::float32}, size, data);
}

/// Returns a data set of rows [from, from + size) of the column of numbers, to which the plan is applied.
std::shared_ptr<const SplitDataset> dataset(const ColumnPlan& plan, int64_t from, int64_t size, bool by_row,
                                            bool on_device = false) {
  auto held = std::make_shared<CachedColumns>();
  held->columns = {numbers(from + size, by_row)};
  held->total = from + size;
  held->on_device = on_device;
  return std::make_shared<SplitDataset>(held, std::vector<ColumnPlan>{plan},
                                        DataSource{"", {}, {}, from, from + size});
}

/// Returns a plan that computes 2 * (number + noise). The noise is between two affine maps.
ColumnPlan noisy_plan() {
  ColumnPlan plan({"numbers", {}, DType::float32});
  plan.affine({1}, {100});
  plan.add(std::make_shared<Noise>(plan.spec()));
  plan.affine({2}, {0});
  return plan;
}

ColumnPlan made_plan(int64_t floats, Made::Make make) {
  ColumnPlan plan({"numbers", {}, DType::float32});
  plan.add(std::make_shared<Made>(plan.spec(), floats, std::move(make)));
  return plan;
}

/// Reads a batch in `replicas` parts, as the replicas of a run do, and returns its rows.
std::vector<Row> rows_of(const Batch& batch, int replicas) {
  std::vector<Row> rows(static_cast<size_t>(batch.size()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < replicas; ++rank)
    threads.emplace_back([&, rank] {
      const int64_t first = batch.size() * rank / replicas, end = batch.size() * (rank + 1) / replicas;
      const View view{rows.data() + first, {end - first, 3}, DType::float32};
      batch.read(first, end - first, {&view, 1});
    });
  for (std::thread& thread : threads) thread.join();
  return rows;
}

/// Reads an epoch from sample `first` to the end, and returns its rows.
std::vector<Row> rest_of_epoch(const std::shared_ptr<const Dataset>& data, const LoaderOptions& options,
                               int64_t epoch, int64_t first, int replicas) {
  Loader loader(data, options);
  loader.begin(epoch, first / options.batch_size);
  std::vector<Row> all;
  while (const auto batch = loader.next())
    for (const Row& row : rows_of(*batch, replicas)) all.push_back(row);
  return all;
}

/// Returns the first number of each row of a batch.
std::vector<float> firsts_of(const Batch& batch, int64_t floats) {
  std::vector<float> rows(static_cast<size_t>(batch.size() * floats)), firsts;
  const View view{rows.data(), {batch.size(), floats}, DType::float32};
  batch.read(0, batch.size(), {&view, 1});
  for (size_t i = 0; i < rows.size(); i += static_cast<size_t>(floats)) firsts.push_back(rows[i]);
  return firsts;
}

/// A way to read an epoch from sample `first` to the end.
struct Way {
  int64_t batch_size, first;
  int replicas;
};
constexpr Way kWays[] = {{12, 0, 1}, {5, 0, 3}, {1, 17, 1}, {20, 40, 2}, {100, 0, 7}};

constexpr int64_t kBlock = 65536;  // number of floats per row, so that one row fills a block of the pool

}  // namespace

TEST_CASE("the randomness of a sample depends only on seed, epoch and index") {
  constexpr int64_t kSize = 60, kFrom = 5;
  for (const uint64_t seed : {uint64_t{3}, uint64_t{1} << 63}) {
    for (const int64_t epoch : {0, 4}) {
      const auto data = dataset(noisy_plan(), kFrom, kSize, false);
      const std::vector<Row> all =
          rest_of_epoch(data, {.batch_size = 12, .seed = seed, .prefetch = 0}, epoch, 0, 1);
      REQUIRE(all.size() == kSize);
      for (int64_t index = 0; index < kSize; ++index) {
        const Row noise = Noise::of({seed, epoch, index}), &row = all[static_cast<size_t>(index)];
        for (size_t i = 0; i < 3; ++i)
          CHECK(row[i] == 2 * (static_cast<float>(kFrom + index) + 100 + noise[i]));
      }
      for (const bool by_row : {false, true}) {
        for (const int threads : {1, 2, 7}) {
          for (const Way& way : kWays) {
            CAPTURE(threads);
            CAPTURE(way.batch_size);
            const auto rest =
                rest_of_epoch(dataset(noisy_plan(), kFrom, kSize, by_row),
                              {.batch_size = way.batch_size, .seed = seed, .prefetch = 2, .threads = threads},
                              epoch, way.first, way.replicas);
            CHECK(rest == std::vector<Row>(all.begin() + way.first, all.end()));
          }
        }
      }
      // Every sample has the same content, with and without shuffling.
      std::vector<Row> shuffled =
          rest_of_epoch(data, {.batch_size = 7, .shuffle = true, .seed = seed, .threads = 3}, epoch, 0, 2);
      CHECK(shuffled != all);
      std::sort(shuffled.begin(), shuffled.end());
      std::vector<Row> sorted = all;
      std::sort(sorted.begin(), sorted.end());
      CHECK(shuffled == sorted);
    }
  }
  std::set<Row> different;
  for (const uint64_t seed : {0, 1})
    for (const int64_t epoch : {0, 1})
      for (const int64_t index : {0, 1}) different.insert(Noise::of({seed, epoch, index}));
  CHECK(different.size() == 8);
}

TEST_CASE("affine maps before any other stage are fused with the gathering of rows") {
  ColumnPlan plan({"x", {2, 2}, DType::uint8});
  plan.affine({0.5}, {1});
  plan.affine({2, 4}, {0, 1});
  plan.cast(DType::float32);
  REQUIRE(plan.map());
  CHECK(std::vector<float>(plan.map()->scale.begin(), plan.map()->scale.end()) ==
        std::vector<float>{1, 2, 1, 2});
  CHECK(std::vector<float>(plan.map()->offset.begin(), plan.map()->offset.end()) ==
        std::vector<float>{2, 5, 2, 5});
  CHECK_FALSE(plan.is_costly());
  CHECK(plan.working_bytes() == 0);
  CHECK_FALSE(noisy_plan().map());
  // 4 bytes for one float before the noise, and 12 bytes for three floats after it.
  CHECK(noisy_plan().working_bytes() == 16);
}

TEST_CASE("a cast from float64 to integers saturates, and NaN becomes 0") {
  const std::array<double, 4> numbers{std::nan(""), 1e20, -1e20, 3.7};
  const std::array<int64_t, 1> first_row{0};
  const AffineStage identity({"x", {4}, DType::float64});
  std::array<int32_t, 4> integers{9, 9, 9, 9};
  identity.cast(DType::int32)->run({numbers.data(), first_row, {}}, integers.data());
  CHECK(integers == std::array<int32_t, 4>{0, INT32_MAX, INT32_MIN, 3});
  std::array<uint8_t, 4> bytes{9, 9, 9, 9};
  identity.cast(DType::uint8)->run({numbers.data(), first_row, {}}, bytes.data());
  CHECK(bytes == std::array<uint8_t, 4>{0, 255, 0, 3});
}

TEST_CASE("expensive stages are computed before they are needed, and random results are not cached") {
  ColumnPlan affine({"numbers", {}, DType::float32});
  affine.affine({2}, {0});
  for (const bool random : {false, true}) {
    const auto data = dataset(random ? noisy_plan() : affine, 0, 10, false, true);
    CHECK(data->in_memory());
    CHECK(data->is_costly() == random);
    CHECK(data->on_device() == !random);
    CHECK(data->stored_form(0).has_value() == !random);
    Loader loader(data, {.batch_size = 5});
    loader.begin(0, 0);
    CHECK((loader.next()->source().dataset == nullptr) == random);
  }
}

TEST_CASE("several threads prepare one batch") {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<int64_t> begun;
  // The calculation of sample 0 ends only after the calculation of sample 2 has started. Sample 2 is in the
  // third block of the same batch.
  const auto make = [&](const SampleKey& key) {
    std::unique_lock lock(mutex);
    begun.insert(key.index);
    changed.notify_all();
    if (key.index == 0)
      CHECK(changed.wait_for(lock, std::chrono::seconds(60), [&] { return begun.contains(2); }));
  };
  Loader loader(dataset(made_plan(kBlock, make), 0, 3, false),
                {.batch_size = 3, .prefetch = 1, .threads = 2});
  loader.begin(0, 0);
  CHECK(firsts_of(*loader.next(), kBlock) == std::vector<float>{0, 1, 2});
}

TEST_CASE(
    "batches are given in their order, however long each sample takes, and no more than asked for are made") {
  std::atomic<int64_t> made = 0;  // number of samples that were computed in epoch 1
  const auto make = [&](const SampleKey& key) {
    std::this_thread::sleep_for(std::chrono::microseconds(key.index * 7919 % 13 * 300));
    made += key.epoch;
  };
  for (const int threads : {1, 2, 7}) {
    made = 0;
    Loader loader(dataset(made_plan(kBlock, make), 0, 22, true),
                  {.batch_size = 4, .prefetch = 2, .threads = threads});
    loader.begin(0, 0);
    loader.next();
    loader.begin(1, 0);  // a new epoch begins while samples of the previous epoch are still being read
    for (int64_t step = 0; step < 6; ++step) {
      const auto batch = loader.next();
      CHECK(made <= 4 * (step + 1 + 2));
      std::vector<float> expected(static_cast<size_t>(std::min<int64_t>(4, 22 - 4 * step)));
      std::iota(expected.begin(), expected.end(), static_cast<float>(4 * step));
      CHECK(firsts_of(*batch, kBlock) == expected);
    }
    CHECK(loader.next() == nullptr);
    CHECK(made == 22);
  }
}

TEST_CASE("a batch throws the error of its first bad sample with any number of threads") {
  const auto make = [](const SampleKey& key) {
    const int64_t index = key.index;
    if (index == 12)
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so sample 12 fails later than sample 13
    if (index == 12 || index == 13 || index == 30) throw UserError("sample " + std::to_string(index));
  };
  for (const int threads : {1, 2, 7}) {
    Loader loader(dataset(made_plan(kBlock, make), 0, 35, false),
                  {.batch_size = 5, .prefetch = 2, .threads = threads});
    loader.begin(0, 0);
    CHECK(firsts_of(*loader.next(), kBlock) == std::vector<float>{0, 1, 2, 3, 4});
    CHECK(firsts_of(*loader.next(), kBlock) == std::vector<float>{5, 6, 7, 8, 9});
    for (int again = 0; again < 3; ++again) CHECK_THROWS_WITH_AS(loader.next(), "sample 12", UserError);
    loader.begin(0, 3);
    for (int step = 3; step < 6; ++step)
      CHECK(firsts_of(*loader.next(), kBlock).front() == static_cast<float>(5 * step));
    CHECK_THROWS_WITH_AS(loader.next(), "sample 30", UserError);
  }
}

TEST_CASE("read_ahead_memory() counts the memory of read-ahead") {
  const auto data = dataset(noisy_plan(), 0, 100, true);
  const LoaderOptions options{.batch_size = 10, .prefetch = 3, .threads = 2};
  const ReadAheadMemory memory = read_ahead_memory(*data, options, false);
  CHECK(memory.for_each_sample == 5 * sizeof(Row));  // for three prefetched batches and two batches in use
  // Each thread has memory for the samples of a batch: the stored number, and the 16 bytes between the
  // stages.
  CHECK(memory.for_threads == 2 * 10 * (16 + sizeof(float)));
  CHECK(memory.bytes(10) == 600 + 400);
  CHECK(Loader(data, options).read_ahead_memory().bytes(10) == 1000);
  // The result is the same for data in memory, because the stage is expensive.
  CHECK(read_ahead_memory(*data, options, true).bytes(10) == 1000);
  CHECK(read_ahead_memory(*data, {.batch_size = 10, .prefetch = 0}, false).bytes(10) == 0);
}

}  // namespace dtrain::test
