#include "data/columns/row_fitter.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "data/stages/fill.h"

namespace dtrain {

FittedStep RowFitter::next(const ColumnPlan& plan, const std::string& kind, const std::string& options,
                           const std::function<FittedStep(const FitSamples&)>& fit) {
  auto& steps = facts_.fitted[name_];
  chain_ += options;
  const auto is_known = [&](const FittedStep& step) {
    return step.kind == kind && (!rows_.is_training || step.chain.empty() || step.chain == chain_);
  };
  if (done_ < steps.size() && is_known(steps[done_])) return steps[done_++];
  if (!rows_.column)
    throw UserError(fmt::format("{}: the run has no statistics of its training split for '{}'", kind, name_));
  // Steps fitted for other transforms are no longer valid.
  steps.resize(done_++);
  steps.push_back(found(plan, fit));
  steps.back().chain = chain_;
  return steps.back();
}

FittedStep RowFitter::found(const ColumnPlan& plan,
                            const std::function<FittedStep(const FitSamples&)>& fit) const {
  ColumnPlan until = plan;
  // Data stored as float64 is fitted in float64, before the conversion to float32 loses digits.
  const bool in_double = plan.stored().dtype == DType::float64;
  until.cast(in_double ? DType::float64 : DType::float32);
  const Column& column = *rows_.column;
  FitSamples samples{until.spec(), rows_.size(), [&](int64_t first, int64_t count, double* dst) {
                       std::vector<int64_t> numbers = row_numbers(rows_.from + first, count);
                       if (!rows_.rows.empty())
                         std::copy_n(rows_.rows.begin() + first, count, numbers.begin());
                       const auto raw = allocate_bytes(static_cast<size_t>(count) * column.row_bytes());
                       column.read(numbers, raw.get());
                       const std::vector<int64_t> in_order = row_numbers(0, count);
                       const StageInput rows{raw.get(), in_order, {numbers, 0, 0}};
                       if (in_double) return until.run(rows, dst);
                       std::vector<float> values(static_cast<size_t>(count * until.spec().shape.elements()));
                       until.run(rows, values.data());
                       std::copy(values.begin(), values.end(), dst);
                     }};
  return fit(samples);
}

namespace {

/// Computes the fill value of each element of a row.
FittedStep fit_fill(const std::vector<std::string>& fills, const FitSamples& samples) {
  if (static_cast<int64_t>(fills.size()) != samples.spec.shape.elements())
    throw UserError(fmt::format("fill: expected {} elements per sample, found {}", fills.size(),
                                samples.spec.shape.elements()));
  std::vector<size_t> of_median;
  for (size_t i = 0; i < fills.size(); ++i)
    if (fills[i] == "median") of_median.push_back(i);
  const bool has_mean = std::find(fills.begin(), fills.end(), "mean") != fills.end();
  const std::vector<double> means = has_mean ? means_of_elements(samples) : std::vector<double>();
  const std::vector<double> medians = medians_of_elements(samples, of_median);
  FittedStep fitted{"fill", {}};
  for (size_t i = 0; i < fills.size(); ++i) {
    const double value = fills[i] == "mean" ? means[i] : fills[i] == "median" ? medians[i] : 0.0;
    if (std::isnan(value))
      throw UserError(fmt::format(
          "fill: element {} (counted from 0) of '{}' has no value in the training split, so it has no {}", i,
          samples.spec.name, fills[i]));
    fitted.numbers["values"].push_back(value);
  }
  return fitted;
}

/// Returns the `fill` option as written. It is the same for all elements of an input that are filled.
std::string options_of(const std::vector<std::string>& fills) {
  const auto some = std::find_if(fills.begin(), fills.end(), [](const auto& fill) { return !fill.empty(); });
  return fmt::format("fill: {}\n", some == fills.end() ? "" : *some);
}

}  // namespace

void add_fill(ColumnPlan& plan, const std::vector<std::string>& fills, Fitter& fitter) {
  if (plan.spec().dtype != DType::float64) plan.cast(DType::float32);  // FillStage needs a float type
  const std::string options = options_of(fills);
  const FittedStep step =
      fitter.next(plan, "fill", options, [&](const FitSamples& samples) { return fit_fill(fills, samples); });
  if (!step.chain.empty() && step.chain != options)
    throw UserError(
        "fill: the run was trained with another 'fill'; resume the run with this 'fill', or train a new run, "
        "first");
  const auto& values = step.numbers.at("values");
  if (static_cast<int64_t>(values.size()) != plan.spec().shape.elements())
    throw UserError(fmt::format("fill: expected {} elements per sample, as in the training split, found {}",
                                values.size(), plan.spec().shape.elements()));
  plan.add(std::make_shared<FillStage>(plan.spec(), values));
}

}  // namespace dtrain
