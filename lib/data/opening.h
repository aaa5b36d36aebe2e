// From what a source holds to what the model wants: the common part of opening splits and files to predict
// from.
#pragma once

#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/diagnostics.h"
#include "data/columns/row_fitter.h"
#include "data/dataset_spec.h"
#include "data/splits/split_dataset.h"

namespace dtrain {

/// What the readers should find, for the transforms to make `wanted` of it.
std::vector<TensorSpec> before_transforms(std::vector<TensorSpec> wanted, bool targets,
                                          const std::vector<TransformSpec>& transforms);

/// What samples are for. Those that are trained on are augmented; on those that are predicted from nothing is
/// fitted.
enum class Purpose { training, evaluation, prediction };

/// Makes a plan for each column that a data set is to have. Refers to its arguments; adds to the source's
/// facts what it fits.
class ColumnPlanner {
 public:
  /// The held columns are taken one after the other, as they are added.
  ColumnPlanner(const DatasetSpec& spec, const CachedColumns& held, DataSource& source, const Mark& place,
                Purpose purpose)
      : spec_(spec), held_(held), source_(source), place_(place), purpose_(purpose) {}

  /// All of the model's, of which at least one has to be of pictures where an augmentation needs them.
  void add_inputs(const std::vector<TensorSpec>& inputs);
  /// Those that the split's reader has read, and those that are inputs, all of which have been added.
  void add_targets(const std::vector<TensorSpec>& targets, const SplitSpec& split,
                   const std::vector<TensorSpec>& inputs);
  /// The weights of the samples, which the source has.
  void add_weights();

  std::vector<ColumnPlan> plans;
  Columns columns;
  std::map<size_t, size_t> input_targets;  // columns of targets that are inputs: the inputs' columns

 private:
  FitRows fit_rows(const Column& column) const;
  void add_input_target(const TensorSpec& target, const std::string& input,
                        const std::vector<TensorSpec>& inputs);
  /// Returns whether it is augmented.
  bool add(const TensorSpec& wanted, bool target);

  const DatasetSpec& spec_;
  const CachedColumns& held_;
  DataSource& source_;
  Mark place_;
  Purpose purpose_;
  std::vector<ColumnPlan> evaluation_plans_;  // of the columns added so far, but for targets that are inputs
  std::vector<int64_t> held_rows_;            // of a drawn split, in the held columns
  size_t next_ = 0;                           // of the held columns
};

/// What is thrown while files are opened and read for the first time, with the place in the configuration
/// that names them.
template <class Open>
auto at_place(const Mark& place, Open open) {
  try {
    return open();
  } catch (const UserError& error) {
    throw UserError(located(place, error.what()));
  } catch (const Error& error) {
    throw Error(located(place, error.what()));
  } catch (const std::bad_alloc&) {
    throw Error(located(place, "there is not enough memory for the samples"));
  } catch (const std::length_error&) {
    throw Error(located(place, "there are more samples than memory could hold"));
  }
}

}  // namespace dtrain
