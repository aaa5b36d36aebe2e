// Formats the results of `dtrain evaluate` as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runs/saved_model.h"
#include "train/evaluation/evaluation.h"
#include "train/evaluation/worst_samples.h"

namespace dtrain {

/// One output's class table for --per-class.
struct ClassTable {
  size_t head;
  std::string name;  // key in Measures::tables
};

/// The samples shown by --errors.
struct Errors {
  std::vector<WorstSample> samples;
  bool has_ids = false;  // if false, the ids are row numbers
  std::string id_title;
};

/// Holds all results of an evaluation.
struct Findings {
  std::string split;                // "" for files given by --input
  std::vector<std::string> inputs;  // files given by --input
  int64_t samples = 0;
  Measures measures;
  std::vector<ClassTable> tables;
  std::vector<std::string> thresholds;  // names of the threshold reports in Measures::tables
  std::vector<std::pair<std::string, double>> in_units;
  std::optional<Errors> errors;
};

/// Returns the name of the layer whose output the head uses.
std::string name_of_output(const RunConfig& config, size_t head);

/// Replaces class indices with the data's class names.
void name_classes(Findings& found, const RunConfig& config, const DataFacts& facts);

std::string findings_as_text(const SavedRun& run, const DataFacts& facts, const Findings& found);
Json findings_as_json(const SavedRun& run, const DataFacts& facts, const Findings& found);

}  // namespace dtrain
