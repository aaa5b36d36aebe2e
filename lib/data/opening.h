// The common part of opening splits and opening files for prediction: plans that turn a source's columns into
// the model's columns.
#pragma once

#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/diagnostics.h"
#include "data/columns/row_fitter.h"
#include "data/dataset_spec.h"
#include "data/located_error.h"
#include "data/splits/split_dataset.h"

namespace dtrain {

/// Returns the types and shapes from which the transforms produce `wanted`.
std::vector<TensorSpec> before_transforms(std::vector<TensorSpec> wanted, bool targets,
                                          const std::vector<TransformSpec>& transforms);

/// The purpose of samples. Only training samples are augmented; nothing is fitted on prediction samples.
enum class Purpose { training, evaluation, prediction };

/// Makes a plan for each column of a data set. Keeps references to its arguments, and adds fitted facts to
/// `source`.
class ColumnPlanner {
 public:
  /// Each added column reads the next column of `held`.
  ColumnPlanner(const DatasetSpec& spec, const CachedColumns& held, DataSource& source, const Mark& place,
                Purpose purpose)
      : spec_(spec), held_(held), source_(source), place_(place), purpose_(purpose) {}

  /// Adds all inputs of the model. `inputs` describes one row of the source, without the axis of windows.
  /// Throws UserError if an augmentation needs images and no input is an image.
  void add_inputs(const std::vector<TensorSpec>& inputs);
  /// Adds the targets. A target is a column of the split's reader, or one of the inputs, which must all have
  /// been added.
  void add_targets(const std::vector<TensorSpec>& targets, const SplitSpec& split,
                   const std::vector<TensorSpec>& inputs);
  /// Adds the sample weights, which the source must have.
  void add_weights();

  std::vector<ColumnPlan> plans;
  Columns columns;
  /// If a target is an input, or an image that belongs to an input: maps the target's column to the input's
  /// column.
  std::map<size_t, size_t> input_targets;

 private:
  FitRows fit_rows(const Column& column) const;
  void add_input_target(const TensorSpec& target, const std::string& input,
                        const std::vector<TensorSpec>& inputs);
  /// Adds a column. `pixels` is the meaning of the pixels if the column is a target that is an image. Returns
  /// true if the column is augmented.
  bool add(const TensorSpec& wanted, bool target, std::optional<TargetPicture> pixels = {});

  const DatasetSpec& spec_;
  const CachedColumns& held_;
  DataSource& source_;
  Mark place_;
  Purpose purpose_;
  // Evaluation plans (PlannedColumn::evaluation) of the columns added so far, except targets that are inputs.
  std::vector<ColumnPlan> evaluation_plans_;
  std::vector<int64_t> held_rows_;  // DataSource::rows_to_fit, as indices into the held columns
  size_t next_ = 0;                 // index of the next held column
};

/// Calls `open`, which opens files or reads them for the first time. Adds the location in the configuration
/// to the errors that it throws, unless they have one.
template <class Open>
auto at_place(const Mark& place, Open open) {
  try {
    return with_location(place, open);
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {
    throw Error(located(place, error.what()));
  } catch (const std::bad_alloc&) {
    throw Error(located(place, "there is not enough memory for the samples"));
  } catch (const std::length_error&) {
    throw Error(located(place, "there are more samples than memory could hold"));
  }
}

}  // namespace dtrain
