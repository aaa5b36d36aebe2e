#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

constexpr math::Adafactor kRule{
    .beta_2_decay = -0.8, .epsilon_1 = 1e-30f, .epsilon_2 = 1e-3f, .clip_threshold = 1};

}  // namespace

DEVICE_TEST_CASE("adafactor's directions of matrices match the reference") {
  struct Dimensions {
    int64_t matrices, rows, columns;
  };
  const StepState state{.now = {.step = 7, .learning_rate = 0.5, .decay = 0.01f},
                        .gradient = {.gradient_scale = 0.5f}};
  const GroupRule group{.learning_rate_factor = 2, .clip_value = 0.4f, .slots_since = 3};
  const std::vector<Dimensions> all{{1, 1, 1},     {1, 5, 7},  {3, 2, 33},   {9, 16, 24},
                                    {1, 3000, 20}, {2, 1, 50}, {1, 700, 300}};
  for (const Dimensions& dimensions : all) {
    const int64_t matrices = dimensions.matrices, rows = dimensions.rows, columns = dimensions.columns;
    CAPTURE(matrices);
    CAPTURE(rows);
    CAPTURE(columns);
    const int64_t n = matrices * rows * columns;
    const auto row_of = [&](int64_t i) { return static_cast<size_t>(i / columns); };
    const auto column_of = [&](int64_t i) {
      return static_cast<size_t>(i / (rows * columns) * columns + i % columns);
    };
    const Floats initial = random_floats(n, 1);
    const auto weights = device.array(initial);
    const auto row_means = device.array(Floats(static_cast<size_t>(matrices * rows))),
               column_means = device.array(Floats(static_cast<size_t>(matrices * columns)));
    Doubles expected_rows(static_cast<size_t>(matrices * rows)),
        expected_columns(static_cast<size_t>(matrices * columns)), w(initial.begin(), initial.end());
    for (uint64_t t = 0; t < 2; ++t) {
      Floats values = random_floats(n, 10 + t);
      // The first row and the first column of each matrix have no gradient.
      for (int64_t i = 0; i < n && rows > 1 && columns > 1; ++i)
        if (i / columns % rows == 0 || i % columns == 0) values[static_cast<size_t>(i)] = 0;
      const auto gradient = device.array(values);
      const auto own_state = device.array(std::vector<StepState>{state});
      device.ops().find_factored_direction(kRule, {.state = own_state.data(),
                                                   .group = group,
                                                   .weights = weights.data(),
                                                   .gradient = gradient.data(),
                                                   .row_means = row_means.data(),
                                                   .column_means = column_means.data(),
                                                   .matrices = matrices,
                                                   .rows = rows,
                                                   .columns = columns});
      const double added = std::pow(5, -0.8);  // fraction that this step adds to the means
      Doubles row_sums(expected_rows.size()), column_sums(expected_columns.size()), g;
      for (int64_t i = 0; i < n; ++i) {
        g.push_back(std::clamp(0.5 * static_cast<double>(values[static_cast<size_t>(i)]), -0.4, 0.4));
        row_sums[row_of(i)] += g.back() * g.back() + 1e-30;
        column_sums[column_of(i)] += g.back() * g.back() + 1e-30;
        w[static_cast<size_t>(i)] *= 1 - 2 * 0.01;
      }
      for (size_t i = 0; i < row_sums.size(); ++i)
        expected_rows[i] += added * (row_sums[i] / static_cast<double>(columns) - expected_rows[i]);
      for (size_t i = 0; i < column_sums.size(); ++i)
        expected_columns[i] += added * (column_sums[i] / static_cast<double>(rows) - expected_columns[i]);
      Doubles expected;
      for (int64_t i = 0; i < n; ++i) {
        double mean = 0;
        const size_t first = row_of(i) / static_cast<size_t>(rows) * static_cast<size_t>(rows);
        for (size_t row = 0; row < static_cast<size_t>(rows); ++row)
          mean += expected_rows[first + row] / static_cast<double>(rows);
        const double square = expected_rows[row_of(i)] / mean * expected_columns[column_of(i)];
        const double own = g[static_cast<size_t>(i)];
        expected.push_back(own == 0 ? 0 : own / std::sqrt(square));
        if (n > 50'000 && i > 2000) break;  // computing the mean takes long
      }
      Floats found = gradient.read();
      found.resize(expected.size());
      check_close(found, expected, 1e-5);
      check_close(row_means.read(), expected_rows, 1e-6);
      check_close(column_means.read(), expected_columns, 1e-6);
    }
    check_close(weights.read(), w, 1e-6);
  }
}

}  // namespace dtrain::test
