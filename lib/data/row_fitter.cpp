#include "data/row_fitter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "data/stages/fill.h"

namespace dtrain {

FittedStep RowFitter::next(const ColumnPlan& plan, const std::string& kind,
                           const std::function<FittedStep(const FitSamples&)>& fit) {
  auto& steps = facts_.fitted[name_];
  if (done_ < steps.size() && steps[done_].kind == kind) return steps[done_++];
  if (!rows_.column)
    throw UserError(fmt::format("{}: the run has no numbers of its training split for '{}'", kind, name_));
  // What was fitted for other transforms than these says nothing any more.
  steps.resize(done_++);
  steps.push_back(found(plan, fit));
  return steps.back();
}

FittedStep RowFitter::found(const ColumnPlan& plan,
                            const std::function<FittedStep(const FitSamples&)>& fit) const {
  ColumnPlan until = plan;
  until.cast(DType::float32);
  const Column& column = *rows_.column;
  FitSamples samples{until.spec(), rows_.size(), [&](int64_t first, int64_t count, float* dst) {
                       std::vector<int64_t> numbers = row_numbers(rows_.from + first, count);
                       if (!rows_.rows.empty())
                         std::copy_n(rows_.rows.begin() + first, count, numbers.begin());
                       const auto raw = allocate_bytes(static_cast<size_t>(count) * column.row_bytes());
                       column.read(numbers, raw.get());
                       until.run({raw.get(), row_numbers(0, count), {numbers, 0, 0}}, dst);
                     }};
  return fit(samples);
}

void add_fill(ColumnPlan& plan, const std::vector<std::string>& fills, Fitter& fitter) {
  const FittedStep step = fitter.next(plan, "fill", [&](const FitSamples& samples) {
    if (static_cast<int64_t>(fills.size()) != samples.spec.shape.elements())
      throw UserError(
          fmt::format("fill: expected {} elements, found {}", fills.size(), samples.spec.shape.elements()));
    std::vector<size_t> of_median;
    for (size_t i = 0; i < fills.size(); ++i)
      if (fills[i] == "median") of_median.push_back(i);
    const bool has_mean = std::find(fills.begin(), fills.end(), "mean") != fills.end();
    const std::vector<double> means = has_mean ? means_of_elements(samples) : std::vector<double>();
    const std::vector<double> medians = medians_of_elements(samples, of_median);
    FittedStep fitted{"fill", {}};
    for (size_t i = 0; i < fills.size(); ++i) {
      const double value = fills[i] == "mean"     ? means[i]
                           : fills[i] == "median" ? medians[i]
                                                  : std::strtod(fills[i].c_str(), nullptr);
      if (std::isnan(value))
        throw UserError(fmt::format(
            "fill: the training split has no value at all for element {} (from 0) of '{}', of which to take "
            "the {}",
            i, plan.spec().name, fills[i]));
      fitted.numbers["values"].push_back(value);
    }
    return fitted;
  });
  const auto& values = step.numbers.at("values");
  if (static_cast<int64_t>(values.size()) != plan.spec().shape.elements() ||
      plan.spec().dtype != DType::float32)
    throw UserError(fmt::format("fill: the training split had {} elements, found {}", values.size(),
                                plan.spec().shape.elements()));
  plan.add(std::make_shared<FillStage>(plan.spec(), std::vector<float>(values.begin(), values.end())));
}

}  // namespace dtrain
