#include "data/loader/sample_weights.h"

#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "data/loader/loader.h"

namespace dtrain::test {

namespace {

/// Each sample has three positions. In sample r, the first r % 4 positions are valid. At the other positions,
/// the tokens are 0 and both numbers of the vectors are -1. Sample r has the weight r % 7, and its positions
/// have the weights 1, 2 and 3.
class Weighted final : public Dataset {
 public:
  static constexpr int64_t kSamples = 50000, kSteps = 3;

  explicit Weighted(bool in_memory) : in_memory_(in_memory) {}
  int64_t size() const override { return kSamples; }
  const std::vector<TensorSpec>& columns() const override { return columns_; }
  void read(const Samples& samples, std::span<const View> dst) const override {
    for (size_t i = 0; i < dst.size(); ++i)
      if (dst[i].data) read_column(i, samples, dst[i].data);
  }
  void read_column(size_t index, const Samples& samples, void* dst) const override {
    auto* numbers = static_cast<int32_t*>(dst);
    auto* floats = static_cast<float*>(dst);
    for (const int64_t row : samples.rows) {
      if (index == 2) *floats++ = static_cast<float>(row % 7);
      for (int64_t t = 0; t < kSteps; ++t) {
        const bool valid = t < row % 4;
        if (index == 0) *numbers++ = valid ? 1 : 0;
        if (index == 1) *floats++ = -1;
        if (index == 1) *floats++ = valid ? 0 : -1;
        if (index == 3) *floats++ = static_cast<float>(t + 1);
      }
    }
  }
  bool in_memory() const override { return in_memory_; }

 private:
  bool in_memory_;
  std::vector<TensorSpec> columns_{{"tokens", {kSteps}, DType::int32},
                                   {"vectors", {kSteps, 2}},
                                   {"weights", {}},
                                   {"weights of positions", {kSteps}}};
};

const std::vector<WeightColumns> kOutputs = {{},
                                             {.mask = WeightColumns::Mask{0, 0, 3}},
                                             {.mask = WeightColumns::Mask{1, -1, 3}, .weights = 2},
                                             {.mask = WeightColumns::Mask{1, -1, 3}, .weights = 3},
                                             {.weights = 2},
                                             {.weights = 3},
                                             {.mask = WeightColumns::Mask{0, 0, 1}, .weights = 3}};

std::vector<double> weights_of_row(int64_t row) {
  const auto valid = static_cast<double>(row % 4), weight = static_cast<double>(row % 7);
  const double of_positions = valid * (valid + 1) / 2;
  return {1, valid, valid * weight, of_positions, weight, 6, valid > 0 ? 6.0 : 0.0};
}

}  // namespace

TEST_CASE("the row weights of a sample are its weights at the positions that are not masked") {
  const Weighted data(true);
  const SampleWeights weights = weigh_samples(data, kOutputs);
  REQUIRE(weights.outputs == kOutputs.size());
  REQUIRE(weights.sums.size() == kOutputs.size() * static_cast<size_t>(Weighted::kSamples));
  for (int64_t row = 0; row < Weighted::kSamples; ++row)
    if (const int64_t rows[] = {row}; weights.sum(rows) != weights_of_row(row)) FAIL("sample " << row);
  const int64_t some[] = {3, 1, 6};
  CHECK(weights.sum(some) == std::vector<double>{3, 6, 9 + 1 + 12, 6 + 1 + 3, 3 + 1 + 6, 18, 18});
}

TEST_CASE("a batch has the sums of the row weights of all its samples") {
  for (const bool in_memory : {true, false}) {
    CAPTURE(in_memory);
    const auto data = std::make_shared<Weighted>(in_memory);
    const auto weights = std::make_shared<const SampleWeights>(weigh_samples(*data, kOutputs));
    LoaderOptions options{.batch_size = 7, .shuffle = true, .seed = 3};
    Loader without(data, options);
    options.weights = weights;
    // This process reads only the second sample of each batch.
    options.rows = [](int64_t) { return std::vector<std::pair<int64_t, int64_t>>{{1, 2}}; };
    Loader with(data, options);
    without.begin(1, 4);
    with.begin(1, 4);
    for (int i = 0; i < 5; ++i) {
      const auto expected = without.next(), batch = with.next();
      CHECK(expected->weight_sums().empty());
      std::vector<int32_t> tokens(7 * 3);
      std::vector<float> weights_of_samples(7);
      const View views[] = {{tokens.data(), {7, 3}, DType::int32}, {}, {weights_of_samples.data(), {7}}, {}};
      expected->read(0, 7, views);
      double valid = 0, sum = 0;
      for (const int32_t token : tokens) valid += token;
      for (const float weight : weights_of_samples) sum += static_cast<double>(weight);
      REQUIRE(batch->weight_sums().size() == kOutputs.size());
      CHECK(batch->size() == 7);
      CHECK(batch->weight_sums()[0] == 7);
      CHECK(batch->weight_sums()[1] == valid);
      CHECK(batch->weight_sums()[4] == sum);
    }
  }
}

}  // namespace dtrain::test
