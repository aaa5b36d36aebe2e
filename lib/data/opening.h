// Code shared by functions that open splits and functions that open files for prediction. It plans how the
// columns of a source are converted to the columns of the model.
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

/// Returns the dtypes and shapes that the stored columns must have so that the transforms convert them to
/// `wanted`. `targets` says whether the columns are targets or inputs.
std::vector<TensorSpec> before_transforms(std::vector<TensorSpec> wanted, bool targets,
                                          const std::vector<TransformSpec>& transforms);

/// How the samples are used. Only training samples are augmented. Transforms are not fitted on prediction
/// samples.
enum class Purpose { training, evaluation, prediction };

/// Makes a plan for each column of a data set. Keeps references to the arguments of the constructor. If a
/// transform is fitted, adds the result to the facts in `source`.
class ColumnPlanner {
 public:
  /// `held` contains the stored columns. Each call that adds a column uses the next stored column.
  ColumnPlanner(const DatasetSpec& spec, const CachedColumns& held, DataSource& source, const Mark& place,
                Purpose purpose)
      : spec_(spec), held_(held), source_(source), place_(place), purpose_(purpose) {}

  /// Adds all inputs of the model. `inputs` contains the spec of one row of each input; if samples are
  /// windows, it does not contain the time axis. Throws UserError if an augmentation needs images but no
  /// input is an image.
  void add_inputs(const std::vector<TensorSpec>& inputs);
  /// Adds the targets. A target is either a column of the split's reader or a copy of an input. add_inputs()
  /// must have been called before.
  void add_targets(const std::vector<TensorSpec>& targets, const SplitSpec& split,
                   const std::vector<TensorSpec>& inputs);
  /// Adds the column of sample weights. The source must have sample weights.
  void add_weights();

  std::vector<ColumnPlan> plans;
  Columns columns;
  /// If a target is also an input, or is an image that belongs to an input, maps the index of the target's
  /// column to the index of the input's column.
  std::map<size_t, size_t> input_targets;

 private:
  FitRows fit_rows(const Column& column) const;
  void add_input_target(const TensorSpec& target, const std::string& input,
                        const std::vector<TensorSpec>& inputs);
  /// Adds a column. If the column is a target that is an image, `pixels` says what its pixel values mean.
  /// Returns true if the column is augmented.
  bool add(const TensorSpec& wanted, bool target, std::optional<TargetPicture> pixels = {});

  const DatasetSpec& spec_;
  const CachedColumns& held_;
  DataSource& source_;
  Mark place_;
  Purpose purpose_;
  // Evaluation plans (PlannedColumn::evaluation) of the columns added so far. Targets that are copies of
  // inputs have no entry.
  std::vector<ColumnPlan> evaluation_plans_;
  // The rows on which transforms are fitted (DataSource::rows_to_fit), as row indices of the held columns.
  std::vector<int64_t> held_rows_;
  size_t next_ = 0;  // index of the next column of held_ to add
};

/// Calls `open`, which opens files or reads them for the first time. If it throws an error, adds the location
/// in the configuration to the message, unless the error is a LocatedError.
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
    throw Error(located(place, "there are more samples than fit in memory"));
  }
}

}  // namespace dtrain
