// A data set with row weights.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/dataset.h"

namespace dtrain {

/// Wraps a data set and adds a column of weights after its targets: the product of the row's sample weight,
/// if the wrapped data set has a column of sample weights, and the weight of the row's class, if classes have
/// weights.
class WeightedDataset final : public Dataset {
 public:
  /// The classes that a target defines for its rows, and the weights of the classes.
  struct Classes {
    size_t target = 0;  // index of the target's column
    /// Number of columns per row, for a float32 target. The class of a row is the index of its largest
    /// column. If there is only one column, the class is 1 if the value is above 0.5, and 0 otherwise.
    int64_t columns = 1;
    std::vector<float> weights = {};  // weight of each class; empty: all weights are 1

    /// Returns the class of row `row` of a target. `values`: the class indices of an int32 target, or the
    /// rows of a float32 target, which have `columns` elements each.
    int64_t of(DType dtype, const void* values, size_t row) const;
  };
  /// `spec`: the spec of the added column of weights. `own`: number of inputs and targets. The data set's
  /// column with that index, if it exists, contains the sample weights.
  WeightedDataset(std::shared_ptr<const Dataset> data, const TensorSpec& spec, size_t own, Classes classes);

  int64_t size() const override { return data_->size(); }
  const std::vector<TensorSpec>& columns() const override { return columns_; }
  void read(const Samples& samples, std::span<const View> dst) const override;
  void read_column(size_t index, const Samples& samples, void* dst) const override;
  std::optional<StoredForm> stored_form(size_t index) const override {
    return index < own_ ? data_->stored_form(index) : std::nullopt;
  }
  void read_stored(size_t index, std::span<const int64_t> rows, void* dst) const override {
    data_->read_stored(index, rows, dst);
  }
  DataIdentity identity() const override { return data_->identity(); }
  std::vector<int64_t> rows_in_files() const override { return data_->rows_in_files(); }
  DataFacts facts() const override { return data_->facts(); }
  bool has_ids() const override { return data_->has_ids(); }
  std::string id_title() const override { return data_->id_title(); }
  std::string sample_id(int64_t index) const override { return data_->sample_id(index); }
  std::vector<std::string> warnings() const override { return data_->warnings(); }
  bool on_device() const override { return data_->on_device(); }
  bool in_memory() const override { return data_->in_memory(); }
  bool is_costly() const override { return data_->is_costly(); }
  size_t working_bytes(int64_t samples) const override;

 private:
  bool has_own() const { return data_->columns().size() > own_; }
  /// Computes the weights of all rows of the samples. `own`: the sample weights; null if the data set has
  /// none. `target`: the target values that determine the classes of the rows.
  void weigh(const Samples& samples, const float* own, const void* target, float* weights) const;

  std::shared_ptr<const Dataset> data_;
  std::vector<TensorSpec> columns_;
  size_t own_;
  Classes classes_;
};

}  // namespace dtrain
