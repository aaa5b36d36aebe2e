// What `dtrain evaluate` found out about a split, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runs/saved_model.h"
#include "train/evaluation.h"
#include "train/worst_samples.h"

namespace dtrain {

/// The table of classes that --per-class shows for one output.
struct ClassTable {
  size_t head;
  std::string name;  // in Measures::tables
};

/// The samples that --errors shows.
struct Errors {
  std::vector<WorstSample> samples;
  bool has_ids = false;  // else their ids are their rows
  std::string id_title;
};

/// All that is found out about a split.
struct Findings {
  std::string split;                // "" of files that the configuration does not name:
  std::vector<std::string> inputs;  // these
  int64_t samples = 0;
  Measures measures;
  std::vector<ClassTable> tables;
  std::vector<std::string> thresholds;  // the names of their reports in Measures::tables
  std::vector<std::pair<std::string, double>> in_units;
  std::optional<Errors> errors;
};

/// The name of the layer whose output the head is for.
std::string name_of_output(const RunConfig& config, size_t head);

/// Gives classes the names that the data have for them.
void name_classes(Findings& found, const RunConfig& config, const DataFacts& facts);

std::string findings_as_text(const SavedRun& run, const DataFacts& facts, const Findings& found);
Json findings_as_json(const SavedRun& run, const DataFacts& facts, const Findings& found);

}  // namespace dtrain
