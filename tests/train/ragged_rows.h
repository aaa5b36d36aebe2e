// Runs over rows of tokens that are padded to one length, for tests of masks.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/runs.h"

namespace dtrain::test {

/// A row begins with `before` steps of padding. Then it has `length` tokens, which are computed from `id`.
struct Row {
  int id = 0, length = 0, before = 0;
  double weight = 1;
};

inline std::vector<Row> rows_of(const std::vector<int>& lengths, int before = 0) {
  std::vector<Row> rows;
  for (const int length : lengths) rows.push_back({static_cast<int>(rows.size()), length, before});
  return rows;
}

/// Writes the rows to a file. Each row is padded with 0 to `steps` tokens, and has a class for each step. If
/// `weighted` is true, each row also has a weight.
inline void write_tokens(const std::string& path, const std::vector<Row>& rows, int steps, bool weighted) {
  std::ofstream file(path);
  for (const Row& row : rows) {
    for (int t = -row.before; t < steps - row.before; ++t)
      file << (t >= 0 && t < row.length ? 1 + (row.id * 7 + t * 3) % 8 : 0) << ',';
    for (int t = -row.before; t < steps - row.before; ++t)
      file << (row.id + t + 30) % 3 << (t + 1 < steps - row.before ? "," : "");
    file << (weighted ? fmt::format(",{}", row.weight) : "") << '\n';
  }
}

/// Writes the rows and returns the configuration of a run over them.
inline std::string run_of(const TempDir& directory, const std::vector<Row>& rows, int steps,
                          bool weighted = false) {
  write_tokens(directory / "t.csv", rows, steps, weighted);
  std::string targets;
  for (int t = 0; t < steps; ++t) targets += fmt::format("{}{}", t ? ", " : "", steps + t);
  return fmt::format(R"(
seed: 3
model:
  inputs: {{x: {{shape: [{0}], dtype: int32}}}}
  layers:
    - embedding: {{input_dim: 9, output_dim: 4, mask_zero: true}}
    - lstm: {{units: 5, return_sequences: true}}
    - dense: {{units: 3}}
dataset: {{train: {{csv: {{file: {1}, target: [{2}]{4}}}}}, shuffle: false}}
train:
  epochs: 4
  batch_size: {3}
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{adam: {{learning_rate: 0.05}}}}
)",
                     steps, directory / "t.csv", targets, rows.size(),
                     weighted ? fmt::format(", weight: {}", 2 * steps) : "");
}

/// Compares the losses of runs that must be equal except for rounding errors.
inline void check_equal(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(3e-6));
}

}  // namespace dtrain::test
