// Facts about the training data. Validation, test and prediction data are read with these facts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/columns/column_reading.h"
#include "data/text/learned_tokens.h"

namespace dtrain {

/// The columns of the training file that the model's inputs and targets come from.
struct FieldNames {
  /// Names of the columns that the inputs are read from, in order, and of the target columns that are not
  /// also inputs. Empty for files without a header.
  std::vector<std::string> inputs, targets;
  /// Indices of the columns that the inputs are read from, in order. Set for delimited text, with or without
  /// a header.
  std::vector<size_t> places;
  size_t width = 0;                  // number of columns of delimited text; 0 if unknown
  std::string id = {}, weight = {};  // column names; "" if there is no such column, or no header

  bool has_names() const { return !inputs.empty() || !targets.empty(); }
  bool operator==(const FieldNames&) const = default;
  Json to_json() const;
  /// Throws UserError if a part is missing or malformed.
  static FieldNames from_json(const Json& json);
};

/// Facts that a reader finds in the training split's files and uses to read other files.
struct SourceFacts {
  using Names = std::map<std::string, std::vector<std::string>>;

  FieldNames fields;
  // Names of the classes, by class index; indexed by target ("target" for a model's only target).
  Names class_names;
  Names categories;  // sorted values of each text column, by its name
  /// Indexed by input: how to fill gaps in each element of a row: "mean" or "median" (of the training split),
  /// or "" if the element has no gaps to fill. A constant fill needs no entry: the reader has already put it
  /// into the column.
  Names fills;
  /// Indexed by table column: dates, amounts and missing-value indicators.
  std::map<std::string, ColumnReading> readings = {};
  /// Vocabularies of text, indexed by table column, or by input for the text reader.
  std::map<std::string, LearnedTokens> tokens = {};

  bool empty() const;
  bool operator==(const SourceFacts&) const = default;
  Json to_json() const;
  /// Leaves missing parts empty. Throws UserError if a part is malformed.
  static SourceFacts from_json(const Json& json);
};

/// Numbers that one transform computed over the training split for one input or target.
struct FittedStep {
  std::string kind;                                    // name of the transform
  std::map<std::string, std::vector<double>> numbers;  // indexed by statistic: "mean", "deviation"
  /// Options of this step and of the steps before it, for which the numbers were computed. Empty in
  /// checkpoints of earlier versions, which do not store them.
  std::string chain = {};
  bool operator==(const FittedStep&) const = default;
};

/// All facts about the training data; stored in checkpoints.
struct DataFacts {
  SourceFacts source;
  /// Indexed by input or target ("target" for a model's only target): one step for each fitted transform, in
  /// order.
  std::map<std::string, std::vector<FittedStep>> fitted;
  std::optional<uint64_t> split_seed;  // seed of the randomly drawn splits

  bool empty() const { return source.empty() && fitted.empty() && !split_seed; }
  bool operator==(const DataFacts&) const = default;
  Json to_json() const;
  /// Throws UserError like SourceFacts::from_json().
  static DataFacts from_json(const Json& json);
};

}  // namespace dtrain
