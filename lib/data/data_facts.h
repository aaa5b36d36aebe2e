// What the training split tells about its data: validation, test and predicted samples are read by it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/columns/column_reading.h"

namespace dtrain {

/// The columns of the training file that make the model's inputs and targets.
struct FieldNames {
  /// The names of those that make the model's inputs, in order, and of those that are its targets, without
  /// the targets that are inputs. Files without a header have none.
  std::vector<std::string> inputs, targets;
  /// Of any delimited text, also without a header: the fields of a line that make the inputs, in order, and
  /// how many fields a line has. 0: not known.
  std::vector<size_t> places;
  size_t width = 0;
  std::string id = {}, weight = {};  // names; "" where there is no such column, or no header

  bool has_names() const { return !inputs.empty() || !targets.empty(); }
  bool operator==(const FieldNames&) const = default;
  Json to_json() const;
  /// Throws UserError where a part is missing or is not what it must be.
  static FieldNames from_json(const Json& json);
};

/// What a reader finds in the training split's files, and reads other files by.
struct SourceFacts {
  using Names = std::map<std::string, std::vector<std::string>>;

  FieldNames fields;
  Names class_names;  // by target, a lone one as "target": class i is called the i-th
  Names categories;   // by column of text: its values, sorted
  /// By input: what becomes of a gap in each element of a row: "mean" or "median" (of the training split), or
  /// "" where there are no gaps. A number needs no training split: it stands in the column already.
  Names fills;
  /// By column of a table: dates, amounts and indicators of missing values.
  std::map<std::string, ColumnReading> readings = {};

  bool empty() const;
  bool operator==(const SourceFacts&) const = default;
  Json to_json() const;
  /// Throws UserError as above; parts that are missing are empty.
  static SourceFacts from_json(const Json& json);
};

/// What one transform has computed over the samples of the training split for one input or target.
struct FittedStep {
  std::string kind;                                    // the transform's
  std::map<std::string, std::vector<double>> numbers;  // by its own names: "mean", "deviation"
  /// What they were computed for: the options of this step and of those before it. "": not known, in
  /// checkpoints of earlier versions.
  std::string chain = {};
  bool operator==(const FittedStep&) const = default;
};

/// A checkpoint keeps them.
struct DataFacts {
  SourceFacts source;
  /// By input or target, a lone target as "target": a step for each of its transforms that are fitted, in
  /// order.
  std::map<std::string, std::vector<FittedStep>> fitted;
  std::optional<uint64_t> split_seed;  // by which splits were drawn

  bool empty() const { return source.empty() && fitted.empty() && !split_seed; }
  bool operator==(const DataFacts&) const = default;
  Json to_json() const;
  /// Throws UserError as above.
  static DataFacts from_json(const Json& json);
};

}  // namespace dtrain
