// The output of `dtrain diff`.
#pragma once

#include <string>

#include "base/json.h"
#include "report/model_comparison.h"
#include "report/step_log_comparison.h"

namespace dtrain {

/// The paths and the tolerance that the text of a comparison mentions.
struct ComparisonTitles {
  std::string a, b;      // the paths that the user gave
  double tolerance = 0;  // shown unless it is 0
};

std::string comparison_text(const ModelComparison& found, const ComparisonTitles& titles);
Json comparison_json(const ModelComparison& found, const ComparedModel& a, const ComparedModel& b);

std::string comparison_text(const StepLogComparison& found, const ComparisonTitles& titles);
Json comparison_json(const StepLogComparison& found);

}  // namespace dtrain
