#include "data/loader/batch_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include "data/loader/loader.h"

namespace dtrain::test {

namespace {

/// Returns lengths from 0 to `most`, most of them short.
std::vector<int64_t> made_up_lengths(int64_t count, int64_t most) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t x = i * 7919 % (most + 1);
    lengths.push_back(x * x / most);
  }
  return lengths;
}

/// A data set with three columns: tokens, vectors and a label. The tokens and the vectors are sequences of
/// `steps` positions. In sample i, the positions from lengths[i] on are padding.
class Tokens final : public Dataset {
 public:
  Tokens(std::vector<int64_t> lengths, int64_t steps, bool in_memory)
      : lengths_(std::move(lengths)),
        in_memory_(in_memory),
        columns_{{"tokens", {steps}, DType::int32}, {"vectors", {steps, 2}}, {"label", {}, DType::int32}} {}
  int64_t size() const override { return static_cast<int64_t>(lengths_.size()); }
  const std::vector<TensorSpec>& columns() const override { return columns_; }
  void read(const Samples& samples, std::span<const View> dst) const override {
    for (size_t i = 0; i < dst.size(); ++i)
      if (dst[i].data) read_column(i, samples, dst[i].data);
  }
  void read_column(size_t index, const Samples& samples, void* dst) const override {
    auto* numbers = static_cast<int32_t*>(dst);
    auto* floats = static_cast<float*>(dst);
    const int64_t steps = columns_[0].shape[0];
    for (const int64_t row : samples.rows) {
      if (index == 2) *numbers++ = static_cast<int32_t>(row);
      if (index == 2) continue;
      for (int64_t t = 0; t < steps; ++t) {
        // Some positions before the end of a sequence contain the padding value, too. They still belong to
        // the sequence.
        const bool valid = t < lengths_[static_cast<size_t>(row)] &&
                           (t % 5 != 2 || t + 1 == lengths_[static_cast<size_t>(row)]);
        if (index == 0) *numbers++ = valid ? static_cast<int32_t>(row + t + 1) : 0;
        if (index == 1) *floats++ = -1;
        if (index == 1) *floats++ = valid ? static_cast<float>(t) : -1;
      }
    }
  }
  bool in_memory() const override { return in_memory_; }

 private:
  std::vector<int64_t> lengths_;
  bool in_memory_;
  std::vector<TensorSpec> columns_;
};

struct Content {
  int64_t length = 0;
  std::vector<int32_t> tokens, labels;
  std::vector<float> vectors;
  bool operator==(const Content&) const = default;
};

/// Reads a batch in two parts. `steps`: number of positions in a batch that is not cut.
Content content_of(const Batch& batch, int64_t steps) {
  const int64_t length = batch.length() ? batch.length() : steps, size = batch.size();
  Content content{length, std::vector<int32_t>(static_cast<size_t>(size * length)),
                  std::vector<int32_t>(static_cast<size_t>(size)),
                  std::vector<float>(static_cast<size_t>(size * length * 2))};
  for (const auto& [first, count] : {std::pair{int64_t{0}, size / 2}, {size / 2, size - size / 2}}) {
    if (count == 0) continue;
    const View views[] = {{content.tokens.data() + first * length, {count, length}, DType::int32},
                          {content.vectors.data() + first * length * 2, {count, length, 2}},
                          {content.labels.data() + first, {count}, DType::int32}};
    batch.read(first, count, views);
  }
  return content;
}

std::vector<Content> rest_of_epoch(Loader& loader, int64_t steps) {
  std::vector<Content> all;
  while (const auto batch = loader.next()) all.push_back(content_of(*batch, steps));
  return all;
}

}  // namespace

TEST_CASE("the length of a sample does not include the padding at its end") {
  const std::vector<int64_t> lengths = made_up_lengths(5000, 300);
  const Tokens tokens(lengths, 301, true);
  const PaddedColumn columns[] = {{0, 0}, {1, -1}};
  CHECK(exact_lengths(tokens, std::span(columns).first(1)) == lengths);
  std::vector<int64_t> of_vectors = lengths;
  CHECK(exact_lengths(tokens, std::span(columns).last(1)) == lengths);
  CHECK(exact_lengths(tokens, columns) == lengths);
}

TEST_CASE("lengths are rounded up to a few lengths with the least padding") {
  for (const int64_t positions : {5, 16, 100, 300, 5000}) {
    CAPTURE(positions);
    const std::vector<int64_t> exact = made_up_lengths(4001, positions);
    const SampleLengths lengths = round_lengths(exact, positions);
    CHECK(lengths.positions == positions);
    CHECK(lengths.distinct.size() <= SampleLengths::kMost);
    CHECK(std::is_sorted(lengths.distinct.begin(), lengths.distinct.end()));
    CHECK(lengths.distinct.back() == positions);
    int64_t sum = 0;
    std::set<int64_t> used;
    for (size_t i = 0; i < exact.size(); ++i) {
      const int64_t rounded = lengths.distinct[lengths.which[i]];
      CHECK(rounded >= std::max<int64_t>(exact[i], 1));
      CHECK((rounded % SampleLengths::kUnit == 0 || rounded == positions));
      used.insert(rounded);
      sum += rounded;
    }
    CHECK(used.size() == lengths.distinct.size());
    // A simpler choice is up to sixteen lengths at equal distances. Its sum of rounded lengths must not be
    // smaller.
    const int64_t step = (positions + 127) / 128 * 8;
    int64_t steps = 0;
    for (const int64_t length : exact)
      steps += std::min((std::max<int64_t>(length, 1) + step - 1) / step * step, positions);
    CHECK(sum <= steps);
  }
  const std::vector<int64_t> empty = {0, 0, 3};
  CHECK(round_lengths(empty, 40).distinct == std::vector<int64_t>{8});
}

TEST_CASE("of all choices of lengths, the choice with the least padding is found") {
  // There are samples of 18 different lengths, but at most 16 lengths are allowed. Therefore two lengths must
  // be rounded up to the next length. All choices of two lengths are compared.
  std::vector<int64_t> exact;
  for (int64_t units = 1; units <= 18; ++units)
    for (int64_t i = 0; i < 1 + units * units * 5 % 7; ++i) exact.push_back(8 * units);
  const auto padded = [&](const std::vector<int64_t>& distinct) {
    int64_t sum = 0;
    for (const int64_t length : exact) sum += *std::lower_bound(distinct.begin(), distinct.end(), length);
    return sum;
  };
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t a = 1; a < 18; ++a)
    for (int64_t b = a + 1; b < 18; ++b) {
      std::vector<int64_t> distinct;
      for (int64_t units = 1; units <= 18; ++units)
        if (units != a && units != b) distinct.push_back(8 * units);
      least = std::min(least, padded(distinct));
    }
  CHECK(padded(round_lengths(exact, 144).distinct) == least);
}

TEST_CASE("an epoch has each sample once, in batches of similar lengths") {
  const SampleLengths lengths = round_lengths(made_up_lengths(1003, 128), 128);
  const int64_t batch = 5;
  const std::vector<int64_t> order = order_by_length(lengths, batch, 3, 0);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(1003);
  std::iota(all.begin(), all.end(), 0);
  CHECK(sorted == all);
  CHECK(order == order_by_length(lengths, batch, 3, 0));
  CHECK(order != order_by_length(lengths, batch, 3, 1));
  CHECK(order != order_by_length(lengths, batch, 4, 0));

  // order_by_length() sorts the samples within windows of 50 batches. In each window, at most one batch
  // contains both samples of one length and samples of the next length.
  size_t mixed = 0;
  std::vector<size_t> first_batches;
  for (size_t first = 0; first + batch <= order.size(); first += batch) {
    std::set<uint8_t> met;
    for (size_t i = first; i < first + batch; ++i) met.insert(lengths.which[static_cast<size_t>(order[i])]);
    mixed += met.size() > 1;
    first_batches.push_back(*met.begin());
  }
  CHECK(mixed <= 4 * (lengths.distinct.size() - 1));
  CHECK(!std::is_sorted(first_batches.begin(), first_batches.begin() + 50));  // batches are shuffled
  CHECK(computed_positions(lengths, order, batch) < computed_positions(lengths, all, batch) * 2 / 3);

  const SampleLengths few = round_lengths(std::vector<int64_t>{3, 4}, 10);
  CHECK(order_by_length(few, 5, 1, 0).size() == 2);  // the data set has fewer samples than a batch
}

TEST_CASE("a loader cuts batches, and gives the same batches after a start in the middle of an epoch") {
  const int64_t steps = 60;
  const std::vector<int64_t> lengths = made_up_lengths(103, steps);
  const auto rounded = std::make_shared<const SampleLengths>(round_lengths(lengths, steps));
  std::vector<Content> expected;
  for (const bool in_memory : {true, false})
    for (const int64_t prefetch : {0, 1, 3}) {
      Loader loader(std::make_shared<Tokens>(lengths, steps, in_memory),
                    {.batch_size = 4, .shuffle = true, .seed = 2, .prefetch = prefetch, .lengths = rounded});
      loader.begin(1, 0);
      const std::vector<Content> all = rest_of_epoch(loader, steps);
      if (expected.empty()) expected = all;
      CHECK(all == expected);
      loader.begin(1, 7);
      CHECK(rest_of_epoch(loader, steps) == std::vector<Content>(all.begin() + 7, all.end()));
    }
  // A batch contains the first positions of its samples.
  const Tokens tokens(lengths, steps, true);
  std::set<int32_t> seen;
  for (const Content& batch : expected) {
    std::vector<int64_t> rows(batch.labels.begin(), batch.labels.end());
    seen.insert(batch.labels.begin(), batch.labels.end());
    CHECK(batch.length == rounded->longest(rows));
    std::vector<int32_t> whole(rows.size() * static_cast<size_t>(steps));
    tokens.read_column(0, {rows}, whole.data());
    for (size_t i = 0; i < rows.size(); ++i)
      CHECK(std::equal(batch.tokens.begin() + static_cast<int64_t>(i) * batch.length,
                       batch.tokens.begin() + static_cast<int64_t>(i + 1) * batch.length,
                       whole.begin() + static_cast<int64_t>(i) * steps));
  }
  CHECK(seen.size() == 103);
}

}  // namespace dtrain::test
