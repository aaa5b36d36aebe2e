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
    throw UserError(fmt::format(
        "{}: this transform needs statistics of the training split for '{}', but the run has none", kind,
        name_));
  // The statistics of this step and all later steps were computed with different transforms, so they are no
  // longer valid.
  steps.resize(done_++);
  steps.push_back(found(plan, fit));
  steps.back().chain = chain_;
  return steps.back();
}

FittedStep RowFitter::found(const ColumnPlan& plan,
                            const std::function<FittedStep(const FitSamples&)>& fit) const {
  ColumnPlan until = plan;
  // Statistics of float64 data are computed in float64 because the conversion to float32 would lose digits.
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

/// Computes the fill value of each element of a row (the mean or the median of the element).
FittedStep fit_fill(const std::vector<std::string>& fills, const FitSamples& samples) {
  if (static_cast<int64_t>(fills.size()) != samples.spec.shape.elements())
    throw UserError(fmt::format("fill: expected {} elements in each sample, found {}", fills.size(),
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
      throw UserError(
          fmt::format("fill: element {} (counted from 0) of '{}' has no value in the whole training split, "
                      "so its {} cannot be computed; set 'fill' to a number",
                      i, samples.spec.name, fills[i]));
    fitted.numbers["values"].push_back(value);
  }
  return fitted;
}

/// Returns the `fill` option as it was written in the configuration. All filled elements of an input have the
/// same option.
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
        "fill: the run was trained with another value of 'fill'; set 'fill' to that value, or first train "
        "with "
        "the new value (resume the run, or start a new run)");
  const auto& values = step.numbers.at("values");
  if (static_cast<int64_t>(values.size()) != plan.spec().shape.elements())
    throw UserError(
        fmt::format("fill: each sample must have {} elements, as in the training split, but found {}",
                    values.size(), plan.spec().shape.elements()));
  plan.add(std::make_shared<FillStage>(plan.spec(), values));
}

}  // namespace dtrain
