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
  /// Names of the columns that the inputs are read from, in the order of the model's inputs, and names of the
  /// target columns. A target column that is also an input is listed only in `inputs`. Both are empty for
  /// files without a header.
  std::vector<std::string> inputs, targets;
  /// Indices of the columns that the inputs are read from, in order. Set for delimited text, with or without
  /// a header.
  std::vector<size_t> places;
  size_t width = 0;  // number of columns of delimited text; 0 if unknown
  // Names of the id and weight columns; "" if there is no such column or no header.
  std::string id = {}, weight = {};

  bool has_names() const { return !inputs.empty() || !targets.empty(); }
  bool operator==(const FieldNames&) const = default;
  Json to_json() const;
  /// Throws UserError if a part of the JSON value is missing or malformed.
  static FieldNames from_json(const Json& json);
};

/// Facts that a reader finds in the training split's files and uses to read other files.
struct SourceFacts {
  using Names = std::map<std::string, std::vector<std::string>>;

  FieldNames fields;
  // Names of the classes in the order of the class indices. The key is the name of the target, or "target" if
  // the model has only one target.
  Names class_names;
  Names categories;  // maps the name of each text column to its sorted values
  /// How missing values are filled. The key is the name of an input. The list has one item for each element
  /// of a row: "mean" or "median" (computed over the training split), or "" if the element needs no fill.
  /// Inputs that are filled with a constant are not listed, because the reader already replaces their missing
  /// values.
  Names fills;
  /// How columns with dates, amounts or missing-value indicators are read. The key is the name of a table
  /// column.
  std::map<std::string, ColumnReading> readings = {};
  /// Text vocabularies. The key is the name of a table column, or the name of an input for the text
  /// reader.
  std::map<std::string, LearnedTokens> tokens = {};

  bool empty() const;
  bool operator==(const SourceFacts&) const = default;
  Json to_json() const;
  /// Parts that the JSON does not contain stay empty. Throws UserError if a part is malformed.
  static SourceFacts from_json(const Json& json);
};

/// Numbers that one transform computed over the training split for one input or target.
struct FittedStep {
  std::string kind;                                    // name of the transform
  std::map<std::string, std::vector<double>> numbers;  // indexed by statistic: "mean", "deviation"
  /// The options of this step and of all earlier steps. The numbers are valid only for these options. Empty
  /// in checkpoints of earlier versions, which do not store the options.
  std::string chain = {};
  bool operator==(const FittedStep&) const = default;
};

/// All facts about the training data; stored in checkpoints.
struct DataFacts {
  SourceFacts source;
  /// The fitted transforms of each input or target, in the order in which they are applied. The key is the
  /// name of the input or target, or "target" if the model has only one target.
  std::map<std::string, std::vector<FittedStep>> fitted;
  std::optional<uint64_t> split_seed;  // seed of the randomly drawn splits

  bool empty() const { return source.empty() && fitted.empty() && !split_seed; }
  bool operator==(const DataFacts&) const = default;
  Json to_json() const;
  /// Throws UserError if a part of the JSON value is malformed.
  static DataFacts from_json(const Json& json);
};

}  // namespace dtrain
