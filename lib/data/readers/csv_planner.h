// Decides what is read of a file of delimited text.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/readers/csv_options.h"
#include "data/readers/csv_table.h"

namespace dtrain {

/// What messages say of a target's missing value.
inline constexpr const char* kTargetGap = "a target must have a value in every row";

/// The column that `field` calls. Throws UserError where the file has none, or no header.
size_t place_of_field(const CsvStart& start, const CsvColumnRef& field);

/// Goes by the options, what is known of the training file, and the file's first lines.
class CsvPlanner {
 public:
  CsvPlanner(const CsvOptions& options, const ReadRequest& request, const CsvStart& start)
      : options_(options), request_(request), known_(request.facts), start_(start) {}

  CsvPlan plan();

  /// What was known, completed by what was read.
  SourceFacts facts(const CsvColumns& columns) const;

 private:
  /// A field may have several: it may be the class of several targets.
  struct TableName {
    size_t field = 0;
    bool is_class = false;  // of a target; else categories of an input
    std::string name;       // in the facts
  };
  /// The facts call the reading of a field's column so.
  struct ReadingName {
    size_t field = 0;
    std::string name;
  };

  size_t width() const { return start_.width(); }
  std::string called(size_t field) const;
  /// Whether this is the file that others are read by.
  bool is_first() const { return known_.fields == FieldNames(); }
  bool by_name() const { return !start_.names.empty() && known_.fields.has_names(); }

  /// The column that an option calls. `name`: what the training file called it, by which it is found where
  /// both files have names and the option says a place.
  size_t place_of(const CsvColumnRef& field, const std::string& name = "") const;
  /// The same; nothing for what a file that is predicted from need not have.
  std::optional<size_t> find(const CsvColumnRef& field, const std::string& name = "") const;
  /// Whether the configuration does not name the file, which may have other columns and lack unused ones.
  bool is_other_file() const { return request_.use != FileUse::split && known_.fields.width != 0; }

  /// Those of the only input, or of the one that `inputs` does not name.
  std::vector<size_t> all_others() const;
  /// By the options alone.
  std::vector<std::vector<size_t>> own_inputs() const;
  /// How many fields each input has, of `total`.
  std::vector<size_t> counts_of_inputs(size_t total) const;
  std::vector<std::vector<size_t>> cut(const std::vector<size_t>& places) const;
  /// The inputs' columns in a file without names that is predicted from: all of its columns, or those of the
  /// training file.
  std::vector<size_t> places_to_predict_from() const;
  std::vector<std::vector<size_t>> choose_inputs();
  std::vector<size_t> choose_targets();
  /// The column of a target, which the training file calls `name`. Throws UserError where it is missing.
  size_t place_of_target(const CsvColumnRef& field, const std::string& name) const;
  void choose_weight_and_id();
  /// `name`: what the facts call the table, of the classes of a target or else of an input's categories.
  void add_table(size_t field, const std::string& name, bool is_class, CsvCategory::When when);
  /// What the training file calls the i-th field of all inputs.
  std::string known_name(size_t field, size_t i) const;
  /// What the options say of columns in the training file; throws UserError where they contradict each other.
  void choose_readings();
  /// A key of `dates`: a column's name, or its index where no column is called so.
  size_t place_of_key(const std::string& key) const;
  /// How the texts of a column are read, which the facts call `name`: the training file's decides.
  ColumnReading reading_of(size_t place, const std::string& name, bool is_number) const;
  /// Puts a reading other than the default one into the plan.
  void add_reading(size_t place, const std::string& name, const ColumnReading& reading);
  void add_input_reading(const TensorSpec& input, size_t place, const std::string& name);
  /// Adds that of a column that has one value a row: no dates, and no indicator. `role`: for a message.
  ColumnReading scalar_reading(const std::string& name, size_t place, const std::string& role);
  void add_input(const TensorSpec& input, const std::vector<size_t>& places);
  bool is_category(size_t place, const std::string& name) const;
  /// What 'fill' has for an input of this type. A fill that is fitted is for later: until then NaN stands
  /// there.
  std::optional<double> fill_of(DType type) const;
  /// What messages say of a gap in an input.
  std::string advice_for_gap(const TensorSpec& input) const;
  void add_target(size_t i, size_t place);

  const CsvOptions& options_;
  const ReadRequest& request_;
  const SourceFacts& known_;
  const CsvStart& start_;
  CsvPlan plan_;
  FieldNames fields_;                         // as the options choose them here
  std::set<size_t> categories_;               // the fields that the options call so
  size_t inputs_done_ = 0;                    // fields
  std::map<size_t, ColumnReading> readings_;  // as the options call them
  std::vector<TableName> table_names_;
  std::vector<ReadingName> reading_names_;
  std::map<std::string, std::vector<std::pair<size_t, std::string>>> fills_;
};

}  // namespace dtrain
