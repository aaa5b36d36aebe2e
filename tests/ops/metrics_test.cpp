#include "ops/losses.h"

namespace dtrain::test {

DEVICE_TEST_CASE("metrics match the reference") {
  using Kind = MetricSpec::Kind;
  const auto sparse = [&](const MetricSpec& spec, const Floats& x, const std::vector<int32_t>& classes) {
    const TypedArray own_x = device.typed(x);
    const auto own = device.array(classes);
    const auto rows = static_cast<int64_t>(classes.size()), columns = static_cast<int64_t>(x.size()) / rows;
    return added(device, [&](double* total) {
      device.ops().metric(spec, {.prediction = own_x.data(),
                                 .target = view_of(own, rows),
                                 .sums = total,
                                 .rows = rows,
                                 .columns = columns});
    });
  };
  const auto dense = [&](const MetricSpec& spec, const Floats& x, const Floats& target,
                         const Extent& extent) {
    const TypedArray own_x = device.typed(x);
    const auto own = device.array(target);
    return added(device, [&](double* total) {
      device.ops().metric(spec, {.prediction = own_x.data(),
                                 .target = view_of(own, extent),
                                 .sums = total,
                                 .rows = extent.rows,
                                 .columns = extent.columns});
    });
  };
  const Floats x{0.1f, 0.7f, 0.2f, 0.4f, 0.4f, 0.2f, 0.3f, 0.3f, 0.4f, kNan, 0.1f, 0.2f};
  CHECK(sparse({Kind::sparse_top_k, 1, 0}, x, {1, 1, 0, 0}) == 1);
  CHECK(sparse({Kind::sparse_top_k, 2, 0}, x, {1, 1, 0, 0}) == 3);
  CHECK(sparse({Kind::sparse_top_k, 3, 0}, x, {1, 1, 0, 0}) == 3);
  CHECK(sparse({Kind::sparse_top_k, 1, 0}, x, {-1, 3, 2, 2}) == 2);
  const Floats one_hot{0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1};
  CHECK(dense({Kind::categorical_top_k, 1, 0}, x, one_hot, {4, 3}) == 4);
  // Every type represents these numbers exactly.
  const Floats scores{0.25f, 0.625f, 0.5f, 0.875f, 0.375f, 0.125f}, labels{0, 1, 1, 1, 1, 0};
  CHECK(dense({Kind::binary_accuracy, 1, 0.5f}, scores, labels, {2, 3}) == doctest::Approx(4.0 / 3));
  CHECK(dense({Kind::mean_absolute_error, 1, 0}, scores, labels, {2, 3}) ==
        doctest::Approx((0.25 + 0.375 + 0.5 + 0.125 + 0.625 + 0.125) / 3));
  const Extent large{1000, 100};
  const Floats many = device.random(large.rows * large.columns, 5);
  std::vector<int32_t> best;
  for (int64_t r = 0; r < large.rows; ++r) {
    const float* row = many.data() + r * large.columns;
    best.push_back(static_cast<int32_t>(std::max_element(row, row + large.columns) - row));
    if (r % 4 == 0) best.back() = (best.back() + 1) % 100;
  }
  CHECK(sparse({Kind::sparse_top_k, 1, 0}, many, best) == 750);
}

namespace {

/// Returns the counts that count() computes. The sums have the value 1 before the call, because count() must
/// add to them.
Doubles counts(const Device& device, const CountSpec& spec, const Floats& x, const View& target,
               const RowWeights& weights, const Extent& extent) {
  const TypedArray own_x = device.typed(x);
  const auto sums = device.array(Doubles(static_cast<size_t>(spec.sums(extent.columns)), 1));
  device.ops().count(spec, {.prediction = own_x.data(),
                            .target = target,
                            .weights = weights,
                            .sums = sums.data(),
                            .rows = extent.rows,
                            .columns = extent.columns});
  Doubles all = sums.read();
  for (double& sum : all) sum -= 1;
  return all;
}

}  // namespace

DEVICE_TEST_CASE("counts of rows match the reference with and without weights") {
  using Kind = CountSpec::Kind;
  const auto count = [&](const CountSpec& spec, const Floats& x, const View& target,
                         const RowWeights& weights,
                         const Extent& extent) { return counts(device, spec, x, target, weights, extent); };
  // The argmax of the rows is 1, 0, 2, 0.
  const Extent rows{4, 3};
  const Floats x{0.25f, 0.75f, 0.5f, 0.5f, 0.5f, 0.25f, -1, 0.125f, 0.25f, 0.875f, 0.75f, 0};
  const auto classes = device.array(std::vector<int32_t>{1, 1, 2, -1});
  const auto one_hot = device.array(Floats{0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0});
  const auto weights = device.array(Floats{2, 0.5f});
  const View sparse = view_of(classes, 4), dense = view_of(one_hot, rows);
  CHECK(count({.kind = Kind::classes, .sparse = true}, x, sparse, {}, rows) ==
        Doubles{0, 1, 1, 1, 1, 1, 0, 2, 1});
  CHECK(count({.kind = Kind::classes}, x, dense, {}, rows) == Doubles{1, 1, 1, 2, 1, 1, 1, 2, 1});
  CHECK(count({.kind = Kind::classes}, x, dense, {weights.data(), 2}, rows) ==
        Doubles{0.5, 2, 0.5, 2.5, 2, 0.5, 0.5, 4, 0.5});
  CHECK(count({.kind = Kind::classes, .by_threshold = true, .threshold = 0.5f}, x, dense, {}, rows) ==
        Doubles{1, 1, 0, 1, 2, 0, 1, 2, 1});
  CHECK(count({.kind = Kind::confusion, .sparse = true}, x, sparse, {}, rows) ==
        Doubles{0, 0, 0, 1, 1, 0, 0, 0, 1});
  const auto labels = device.array(Floats{1, 0, 1, 1});
  CHECK(count({.kind = Kind::confusion, .threshold = 0.5f}, {0.75f, 0.25f, 0.5f, 1}, view_of(labels, {4, 1}),
              {}, {4, 1}) == Doubles{1, 0, 1, 2});
  // The targets are 1, 1 and 0. The first score is in the middle of the range, the others are at its ends.
  // Scores outside of the range are counted in the first or the last bucket.
  const CountSpec buckets{.kind = Kind::buckets, .buckets = 4};
  const auto three = device.array(Floats{1, 1, 0});
  CHECK(count(buckets, {0.5f, 1, 0}, view_of(three, {3, 1}), {}, {3, 1}) == Doubles{1, 0, 0, 0, 0, 0, 1, 1});
  CountSpec logits = buckets;
  logits.scores = CountSpec::Scores::sigmoid_logits;
  CHECK(count(logits, {-100, 100, kNan}, view_of(three, {3, 1}), {}, {3, 1}) ==
        Doubles{1, 0, 0, 0, 1, 0, 0, 1});
  // The softmax rows are 0.88 0.06 0.06, 0.42 0.42 0.16 and 0.19 0.28 0.53.
  const Floats scores{2.5f, -0.25f, -0.25f, 3, 3, 2, 1, 1.375f, 2};
  const auto wanted = device.array(Floats{1, 0, 0, 1, 1, 0, 0, 1, 1});
  CountSpec softmax{.kind = Kind::classes,
                    .by_threshold = true,
                    .scores = CountSpec::Scores::softmax_logits,
                    .threshold = 0.4f};
  CHECK(count(softmax, scores, view_of(wanted, {3, 3}), {}, {3, 3}) == Doubles{2, 1, 1, 2, 1, 1, 2, 2, 1});
  softmax.kind = Kind::answers;
  CHECK(count(softmax, scores, view_of(wanted, {3, 3}), {}, {3, 3}).at(0) ==
        doctest::Approx(1 + 1 + 2.0 / 3));
  CHECK(count(softmax, scores, view_of(wanted, {3, 3}), {weights.data(), 2}, {3, 3}).at(0) ==
        doctest::Approx(2 + 2 + 0.5 * 2 / 3));
  CountSpec each{.kind = Kind::buckets,
                 .sparse = true,
                 .scores = CountSpec::Scores::softmax_logits,
                 .buckets = 2,
                 .by_column = true};
  CHECK(count(each, {4, 0, 0, 0, 4, 0}, view_of(classes, 2), {}, {2, 3}) ==
        Doubles{1, 1, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0});
  CHECK(count({.kind = Kind::regression}, {1, 2, 3, 4}, view_of(labels, {2, 2}), {}, {2, 2}) ==
        Doubles{2, 1, 2, 1, 4, 13, 2});
  const Extent large{3000, 7};
  const Floats many = device.random(large.rows * large.columns, 3);
  std::vector<int32_t> numbers;
  for (int64_t r = 0; r < large.rows; ++r) numbers.push_back(static_cast<int32_t>(r % 7));
  const auto own_numbers = device.array(numbers);
  const Doubles matrix =
      count({.kind = Kind::confusion, .sparse = true}, many, view_of(own_numbers, large.rows), {}, large);
  Doubles expected(49);
  for (int64_t r = 0; r < large.rows; ++r) {
    const float* row = many.data() + r * 7;
    expected[static_cast<size_t>(r % 7 * 7 + (std::max_element(row, row + 7) - row))] += 1;
  }
  CHECK(matrix == expected);
  if (device.is_gpu() && !device.math.deterministic) return;
  // The count of each row is a fraction. Therefore, the sum of the counts depends on the order of additions.
  Floats wanted_answers = random_floats(large.rows * large.columns, 4);
  for (float& answer : wanted_answers) answer = answer > 0 ? 1.0f : 0.0f;
  const auto answers = device.array(wanted_answers);
  const auto shares = [&] {
    return count({.kind = Kind::answers}, many, view_of(answers, {large.rows, large.columns}), {}, large);
  };
  const Doubles first = shares();
  for (int time = 0; time < 4; ++time) CHECK(shares() == first);
}

DEVICE_TEST_CASE("counts of long rows match the reference") {
  using Kind = CountSpec::Kind;
  for (const Extent& extent : {Extent{40, 100}, Extent{5, 1500}, Extent{1300, 9}}) {
    const auto [rows, columns] = extent;
    CAPTURE(columns);
    const auto n = static_cast<size_t>(columns);
    const Floats scores = device.random(rows * columns, 3, 8), numbers = device.random(rows * columns, 4);
    const Weights weights(device, rows, 2, true);
    Floats one_hot(elements(extent));
    Doubles classes(3 * n), above(3 * n), regression(3 * n + 1), curves(4 * n), curve(4), answers(1);
    for (int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<size_t>(r * columns), target = static_cast<size_t>(r * 7 % columns);
      const float* x = scores.data() + at;
      one_hot[at + target] = 1;
      const auto best = static_cast<size_t>(std::max_element(x, x + columns) - x);
      double total = 0;
      for (size_t c = 0; c < n; ++c) total += std::exp(static_cast<double>(x[c] - x[best]));
      const double w = weights.of(r);
      classes[target] += best == target ? w : 0;
      classes[n + best] += w;
      classes[2 * n + target] += w;
      regression[3 * n] += w;
      for (size_t c = 0; c < n; ++c) {
        const bool is = c == target, predicted = std::exp(static_cast<double>(x[c] - x[best])) / total > 0.03;
        above[c] += is && predicted ? w : 0;
        above[n + c] += predicted ? w : 0;
        above[2 * n + c] += is ? w : 0;
        answers[0] += is == predicted ? w / static_cast<double>(columns) : 0;
        const size_t bucket = (is ? 2 : 0) + (x[c] < 0 ? 0 : 1);
        curves[4 * c + bucket] += w;
        curve[bucket] += w;
        const double t = static_cast<double>(numbers[at + c]), error = t - static_cast<double>(x[c]);
        regression[c] += w * t;
        regression[n + c] += w * t * t;
        regression[2 * n + c] += w * error * error;
      }
    }
    const auto own_one_hot = device.array(one_hot), own_numbers = device.array(numbers);
    const auto check = [&](const CountSpec& spec, const Array<float>& target, const Doubles& expected) {
      CAPTURE(static_cast<int>(spec.kind));
      const auto count = [&] {
        return counts(device, spec, scores, view_of(target, extent), weights.rows(), extent);
      };
      const Doubles found = count();
      size_t wrong = 0;
      for (size_t i = 0; i < found.size(); ++i)
        wrong += std::abs(found[i] - expected[i]) > 1e-11 * (1 + std::abs(expected[i])) ? 1 : 0;
      CHECK(wrong == 0);
      if (!device.is_gpu() || device.math.deterministic) CHECK(count() == found);
    };
    const auto softmax = CountSpec::Scores::softmax_logits;
    check({.kind = Kind::classes}, own_one_hot, classes);
    check({.kind = Kind::classes, .by_threshold = true, .scores = softmax, .threshold = 0.03f}, own_one_hot,
          above);
    check({.kind = Kind::answers, .scores = softmax, .threshold = 0.03f}, own_one_hot, answers);
    check({.kind = Kind::regression}, own_numbers, regression);
    CountSpec buckets{.kind = Kind::buckets, .scores = CountSpec::Scores::sigmoid_logits, .buckets = 2};
    check(buckets, own_one_hot, curve);
    buckets.by_column = true;
    check(buckets, own_one_hot, curves);
    // A probability is above one half if and only if its logit is positive.
    buckets.scores = softmax;
    for (int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<size_t>(r * columns);
      const float* x = scores.data() + at;
      double total = 0;
      for (size_t c = 0; c < n; ++c) total += std::exp(static_cast<double>(x[c]));
      for (size_t c = 0; c < n; ++c) {
        const bool more = std::exp(static_cast<double>(x[c])) > total / 2;
        if (more == (x[c] >= 0)) continue;
        const size_t of_class = 4 * c + (one_hot[at + c] > 0 ? 2 : 0);
        curves[of_class + (more ? 1 : 0)] += weights.of(r);
        curves[of_class + (more ? 0 : 1)] -= weights.of(r);
      }
    }
    check(buckets, own_one_hot, curves);
  }
}

DEVICE_TEST_CASE("counts of many rows are exact with few and with many sums") {
  using Kind = CountSpec::Kind;
  struct Case {
    Kind kind;
    Extent extent;
    bool weighted;
  };
  // On a GPU, a thread, a warp or a block counts a row. Blocks combine their rows if there are at most 4096
  // sums, or 2048 sums if rows have weights.
  for (const auto& [kind, extent, weighted] :
       {Case{Kind::confusion, {20000, 2}, false}, Case{Kind::confusion, {20000, 2}, true},
        Case{Kind::classes, {20000, 7}, false}, Case{Kind::classes, {20000, 7}, true},
        Case{Kind::confusion, {3000, 8}, false}, Case{Kind::confusion, {3000, 8}, true},
        Case{Kind::confusion, {600, 64}, false}, Case{Kind::confusion, {600, 65}, false},
        Case{Kind::confusion, {600, 45}, true}, Case{Kind::confusion, {600, 46}, true},
        Case{Kind::classes, {100, 1365}, false}, Case{Kind::classes, {100, 1366}, false},
        Case{Kind::classes, {100, 1025}, true}}) {
    const auto [rows, columns] = extent;
    CAPTURE(columns);
    CAPTURE(weighted);
    const auto n = static_cast<size_t>(columns);
    const CountSpec spec{.kind = kind, .sparse = true};
    const Floats scores = device.random(rows * columns, 6);
    std::vector<int32_t> classes;
    Floats weights;
    Doubles expected(static_cast<size_t>(spec.sums(columns)));
    for (int64_t r = 0; r < rows; ++r) {
      // Every tenth row has no class. Sums of the weights do not depend on the order of additions.
      classes.push_back(r % 10 == 3 ? -1 : static_cast<int32_t>(r * r % columns));
      weights.push_back(0.25f * static_cast<float>(r % 6));
      if (classes.back() < 0) continue;
      const float* row = scores.data() + r * columns;
      const auto best = static_cast<size_t>(std::max_element(row, row + columns) - row);
      const auto is = static_cast<size_t>(classes.back());
      const double w = weighted ? static_cast<double>(weights.back()) : 1;
      if (kind == Kind::confusion) {
        expected[is * n + best] += w;
        continue;
      }
      expected[is] += best == is ? w : 0;
      expected[n + best] += w;
      expected[2 * n + is] += w;
    }
    const auto own_classes = device.array(classes);
    const auto own_weights = device.array(weights);
    const RowWeights row_weights = weighted ? RowWeights{own_weights.data(), 1} : RowWeights{};
    CHECK(counts(device, spec, scores, view_of(own_classes, rows), row_weights, extent) == expected);
  }
  // With one column, the fraction of correct answers of a row is 0 or 1.
  const int64_t rows = 5000;
  const Floats scores = device.random(rows, 7);
  Floats answers;
  double right = 0;
  for (int64_t r = 0; r < rows; ++r) {
    answers.push_back(r % 3 == 0 ? 1.0f : 0.0f);
    right += (scores[static_cast<size_t>(r)] > 0.5f) == (r % 3 == 0) ? 1 : 0;
  }
  const auto own_answers = device.array(answers);
  CHECK(counts(device, {.kind = Kind::answers}, scores, view_of(own_answers, {rows, 1}), {}, {rows, 1}) ==
        Doubles{right});
}

DEVICE_TEST_CASE("sums are added to a total") {
  for (const int64_t n : {1, 5, 100000}) {
    Floats values = random_floats(n, 9);
    double expected = 0;
    for (const float value : values) expected += static_cast<double>(value);
    const auto own = device.array(values);
    CHECK(added(device, [&](double* total) { device.ops().add_sum(own.data(), total, n); }) ==
          doctest::Approx(expected).epsilon(1e-12));
  }
}

DEVICE_TEST_CASE("metrics count rows by their weights") {
  using Kind = MetricSpec::Kind;
  const TypedArray x = device.typed(Floats{0.25f, 0.625f, 0.5f, 0.875f, 0.375f, 0.125f});
  const auto classes = device.array(std::vector<int32_t>{1, 1, 0});
  const auto labels = device.array(Floats{0, 1, 1, 1, 1, 0}), weights = device.array(Floats{2, 0.5f, 4});
  const auto run = [&](const MetricSpec& spec, const View& target) {
    return added(device, [&](double* total) {
      device.ops().metric(spec, {.prediction = x.data(),
                                 .target = target,
                                 .weights = {weights.data(), 1},
                                 .sums = total,
                                 .rows = 3,
                                 .columns = 2});
    });
  };
  CHECK(run({.kind = Kind::sparse_top_k}, view_of(classes, 3)) == 6.5);
  CHECK(run({.kind = Kind::binary_accuracy}, view_of(labels, {3, 2})) == doctest::Approx(2 + 0.25 + 2));
  CHECK(run({.kind = Kind::mean_absolute_error}, view_of(labels, {3, 2})) ==
        doctest::Approx(2 * 0.3125 + 0.5 * 0.3125 + 4 * 0.375));
}

}  // namespace dtrain::test
