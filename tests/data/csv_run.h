// A training table, and other tables that are read with the facts about the training table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/support.h"

namespace dtrain::test {

inline const TensorSpec kLabel{"", {}, DType::int32}, kNumber{"", {1}};

/// A run with the training file train.csv. The facts about this file are used to read other files.
struct Run {
  TempDir folder;
  DatasetSpec spec;
  std::vector<TensorSpec> inputs, targets;

  std::shared_ptr<const Dataset> train(const std::string& text, const std::string& options,
                                       const std::vector<TensorSpec>& of_model,
                                       const std::vector<TensorSpec>& losses = {kLabel},
                                       const std::string& more = "") {
    write_file(folder / "train.csv", text);
    inputs = of_model;
    targets = losses;
    spec = parse(folder, "train: {csv: {file: train.csv, " + options + "}}" + more);
    auto data = open_split(spec, *spec.train, inputs, targets, true);
    spec.facts = DataFacts::from_json(Json::parse(data->facts().to_json().dump()));
    return data;
  }
  /// Reopens the run's training split with other options.
  std::shared_ptr<const Dataset> resume(const std::string& options, const std::string& more = "") {
    DatasetSpec other = parse(folder, "train: {csv: {file: train.csv, " + options + "}}" + more);
    other.facts = spec.facts;
    return open_split(other, *other.train, inputs, targets, true);
  }
  std::shared_ptr<const Dataset> validate(const std::string& text, const std::string& options) {
    write_file(folder / "other.csv", text);
    DatasetSpec other = parse(folder, "validation: {csv: {file: other.csv, " + options + "}}");
    other.facts = spec.facts;
    return open_split(other, *other.validation, inputs, targets);
  }
  std::shared_ptr<const Dataset> predict(const std::string& text, const TextOptions& options = {}) {
    write_file(folder / "in.csv", text);
    return open_inputs(given(folder / "in.csv"), spec, inputs, options);
  }
  std::string error(const std::string& text, const std::string& options,
                    const std::vector<TensorSpec>& of_model,
                    const std::vector<TensorSpec>& losses = {kLabel}) {
    return error_of([&] { train(text, options, of_model, losses); });
  }
};

}  // namespace dtrain::test
