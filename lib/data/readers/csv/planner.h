// Plans how a file of delimited text is read.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/readers/csv/field_places.h"
#include "data/readers/csv/options.h"
#include "data/readers/csv/table.h"
#include "data/windows/windows_options.h"

namespace dtrain {

/// The text of messages about a missing value of a target.
inline constexpr const char* kTargetGap = "a target must have a value in every row";

/// Makes a plan from the options, the facts about the training file, and the file's first lines.
class CsvPlanner {
 public:
  CsvPlanner(const CsvOptions& options, const ReadRequest& request, const CsvStart& start)
      : options_(options), request_(request), known_(request.facts), start_(start) {}

  CsvPlan plan();

  /// Returns the facts that were known before, together with the facts found in this file.
  SourceFacts facts(const CsvColumns& columns) const;

 private:
  /// The name of a table of classes or categories. If several targets are read from one field, the field has
  /// several tables.
  struct TableName {
    size_t field = 0;
    bool is_class = false;  // true for classes of a target, false for categories of an input
    std::string name;       // the name under which the facts store the table
  };
  /// The name under which the facts store the ColumnReading of a field.
  struct ReadingName {
    size_t field = 0;
    std::string name;
  };

  size_t width() const { return start_.width(); }
  std::string called(size_t field) const;
  /// Returns true if no facts are known yet, so that this file determines how other files are read.
  bool is_first() const { return known_.fields == FieldNames(); }
  bool by_name() const { return !start_.names.empty() && known_.fields.has_names(); }

  /// Returns the index of the column that an option selects. `name` is the column's name in the training
  /// file. If the option is an index and both files have column names, the column is looked up by `name`
  /// instead.
  size_t place_of(const CsvColumnRef& field, const std::string& name = "") const;
  /// Like place_of(), but returns nullopt for a missing column that a file for predictions need not have.
  std::optional<size_t> find(const CsvColumnRef& field, const std::string& name = "") const;
  /// Returns true if the configuration does not name this file. Such a file may have additional columns, and
  /// columns that are not used may be missing.
  bool is_other_file() const { return request_.use != FileUse::split && known_.fields.width != 0; }

  /// Returns the columns that no option uses. They make up the only input, or the only input that `inputs`
  /// does not name.
  std::vector<size_t> all_others() const;
  /// Returns the columns that the options select for each input. Does not use facts about the training file.
  std::vector<std::vector<size_t>> own_inputs() const;
  /// Returns the number of fields of each input. All inputs together have `total` fields.
  std::vector<size_t> counts_of_inputs(size_t total) const;
  std::vector<std::vector<size_t>> cut(const std::vector<size_t>& places) const;
  /// Returns the columns of the inputs in a file for predictions that has no column names. If the file has
  /// only the columns of the inputs, all columns are returned; otherwise the columns are at the same
  /// positions as in the training file.
  std::vector<size_t> places_to_predict_from() const;
  std::vector<std::vector<size_t>> choose_inputs();
  /// Returns the columns of each target.
  std::vector<std::vector<size_t>> choose_targets();
  /// Returns the index of the column of a target. `name` is the name of the column in the training file.
  /// Throws UserError if this file does not have the column.
  size_t place_of_target(const CsvColumnRef& field, const std::string& name) const;
  void choose_weight_and_id();
  /// Chooses the series column and the time column. The rows are sorted by these columns to make windows.
  void choose_order();
  /// Returns the index of the column that an option of `windows` names. Throws UserError if the column is
  /// missing.
  size_t place_of_order(const std::string& key) const;
  /// Returns true if the option `dates` or `categories` names the column, which makes it a feature.
  bool is_named_feature(size_t place) const;
  /// Adds a table of a target's classes or an input's categories, with its name in the facts.
  void add_table(size_t field, const std::string& name, bool is_class, CsvCategory::When when);
  /// Returns the name that a field has in the training file. `i` is the index of the field among the fields
  /// of all inputs.
  std::string known_name(size_t field, size_t i) const;
  /// Collects the ColumnReadings that the options select for the columns of the training file. Throws
  /// UserError if options contradict each other.
  void choose_readings();
  /// Returns the index of the column to which a key of an option refers (column_of_key()).
  size_t place_of_key(const std::string& key) const;
  /// Returns how to read the texts of a column. `name` is the name of the column in the facts. If facts about
  /// the training file are known, they determine the reading; otherwise the options do.
  ColumnReading reading_of(size_t place, const std::string& name, bool is_number) const;
  /// Adds the ColumnReading of a column to the plan, unless the column is read in the default way.
  void add_reading(size_t place, const std::string& name, const ColumnReading& reading);
  void add_input_reading(const TensorSpec& input, size_t place, const std::string& name);
  /// Adds the ColumnReading of a column with one number per row, and returns it. Such a column has no
  /// indicator of missing values. Throws UserError for a column of dates. `role` ("target" or "weight")
  /// describes the column in messages.
  ColumnReading scalar_reading(const std::string& name, size_t place, const std::string& role);
  void add_input(const TensorSpec& input, const std::vector<size_t>& places);
  /// Adds an input that consists of the tokens of one column.
  void add_text(const TensorSpec& input, size_t place, const std::string& name);
  bool is_text(size_t place, const std::string& name) const;
  /// Returns the options of a column of text, or null if the column is not a column of text. `name` is the
  /// name of the column in the facts.
  const CsvTextColumn* text_column(size_t place, const std::string& name) const;
  /// Throws UserError if a column of text is also a column of categories, or if no input reads it.
  void check_texts(const std::vector<std::vector<size_t>>& inputs) const;
  bool is_category(size_t place, const std::string& name) const;
  /// Returns the value of the option 'fill' for an input of this type, or nullopt if the type cannot hold the
  /// value. Returns NaN for mean and median, which are computed later.
  std::optional<double> fill_of(DType type) const;
  /// Returns the advice that messages give about a missing value of an input.
  std::string advice_for_gap(const TensorSpec& input) const;
  void add_target(const TensorSpec& target, const std::vector<size_t>& places);
  /// Adds the only target, which has one 0/1 number for each label.
  void add_labels(const TensorSpec& target, const std::vector<size_t>& places);

  const CsvOptions& options_;
  const ReadRequest& request_;
  const SourceFacts& known_;
  const CsvStart& start_;
  CsvPlan plan_;
  FieldNames fields_;                         // columns of this file that the options select
  std::set<size_t> categories_;               // fields listed in the option `categories`
  std::vector<CsvColumnRef> past_targets_;    // targets whose past values are read for a forecast
  size_t inputs_done_ = 0;                    // fields of inputs added so far
  size_t targets_done_ = 0;                   // fields of targets added so far
  std::map<size_t, ColumnReading> readings_;  // readings that the options select
  std::vector<TableName> table_names_;
  std::vector<ReadingName> reading_names_;
  std::map<size_t, std::string> token_names_;  // indexed by field; the names of vocabularies in the facts
  std::map<std::string, std::vector<std::pair<size_t, std::string>>> fills_;
  SourceFacts::Names label_names_;  // indexed by target; set if each label has a column
};

}  // namespace dtrain
