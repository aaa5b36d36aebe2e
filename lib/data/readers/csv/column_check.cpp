#include "data/readers/csv/column_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/readers/csv/field_places.h"
#include "data/windows/windows_options.h"

namespace dtrain {

namespace {

/// Collects columns that options name.
struct NamedColumns {
  const CsvStart& start;
  std::vector<CsvColumnRef> all = {};

  void add(const std::vector<CsvColumnRef>& some) { all.insert(all.end(), some.begin(), some.end()); }
  void add_key(const std::string& key, const Mark& mark) { all.push_back(column_of_key(start, key, mark)); }
  void add_time(const WindowsOptions* windows) {
    if (windows && windows->time) add_key(*windows->time, windows->time_mark);
  }
};

std::vector<CsvColumnRef> columns_of_training_file(const CsvOptions& options, const ReadRequest& request,
                                                   const CsvStart& start) {
  NamedColumns columns{start};
  columns.add(options.target_columns());
  for (const auto* some : {&options.columns, &options.drop, &options.categories, &options.amounts})
    columns.add(*some);
  for (const auto& [name, some] : options.inputs) columns.add(some);
  if (options.indicators) columns.add(options.indicators->columns);
  for (const auto* one : {&options.id, &options.weight})
    if (*one) columns.add({**one});
  for (const auto& [key, parts] : options.dates) columns.add_key(key, options.dates.mark_of(key));
  for (const auto& [key, column] : options.text) columns.add_key(key, options.text.mark_of(key));
  columns.add_time(request.windows);
  return columns.all;
}

/// Returns the columns that the options name in a file that is not the training file. If both files have
/// column names, a column that the options select by its index is found by its name in the training file.
std::vector<CsvColumnRef> columns_of_other_split(const CsvOptions& options,
                                                 const std::vector<CsvTarget>& targets,
                                                 const ReadRequest& request, const CsvStart& start) {
  const FieldNames& known = request.facts.fields;
  NamedColumns columns{start};
  const auto add = [&](CsvColumnRef column, const std::string& name) {
    if (column.index && !start.names.empty() && known.has_names() && !name.empty())
      column = {{}, name, column.mark};
    columns.add({column});
  };
  size_t next = 0;
  for (const CsvTarget& target : targets)
    for (const CsvColumnRef& column : target) {
      add(column, next < known.targets.size() ? known.targets[next] : "");
      ++next;
    }
  if (options.weight && request.use != FileUse::prediction) add(*options.weight, known.weight);
  if (options.id) add(*options.id, known.id);
  columns.add_time(request.windows);
  return columns.all;
}

/// Throws UserError if the table does not have the column that identifies the series.
void check_series(const WindowsOptions& windows, const CsvStart& start) {
  try {
    place_of_field(start, column_of_key(start, *windows.by, windows.by_mark));
  } catch (const UserError& error) {
    if (start.names.empty()) throw;
    throw UserError(fmt::format("{}; if all rows belong to one series, leave out 'by'", error.what()));
  }
}

}  // namespace

void find_columns(const CsvStart& start, const std::vector<CsvColumnRef>& columns, ErrorCollector& errors) {
  if (start.names.empty() || has_other_delimiter(start.names))
    for (const CsvColumnRef& column : columns)
      if (!column.index) place_of_field(start, column);
  constexpr size_t kMostErrors = 20;
  size_t missing = 0;
  for (const CsvColumnRef& column : columns) {
    const bool has_name = std::find(start.names.begin(), start.names.end(), column.name) != start.names.end();
    if (!column.index && !has_name && ++missing > kMostErrors) continue;
    errors.attempt(column.mark, [&] { place_of_field(start, column); });
  }
  if (missing > kMostErrors)
    errors.attempt({}, [&] {
      throw UserError(
          fmt::format("{}: {}", start.path,
                      format_plural(static_cast<int64_t>(missing - kMostErrors), "more missing column")));
    });
}

void check_columns(const CsvOptions& options, const ReadRequest& request, const CsvStart& start) {
  const FieldNames& known = request.facts.fields;
  if (request.use != FileUse::split && known.width != 0) return;
  ErrorCollector errors;
  std::vector<CsvTarget> targets;
  if (!request.targets.empty()) errors.attempt({}, [&] { targets = wanted_targets(options, request); });
  const bool is_first = known == FieldNames();
  if (!is_first && !start.names.empty() && known.has_names())
    errors.attempt({}, [&] { places_of_columns(start.path, known.inputs, start.names); });
  std::vector<CsvColumnRef> columns = is_first ? columns_of_training_file(options, request, start)
                                               : columns_of_other_split(options, targets, request, start);
  for (CsvColumnRef& column : columns) column.mark = request.at(column.mark);
  find_columns(start, columns, errors);
  if (request.windows && request.windows->by)
    errors.attempt(request.at(request.windows->by_mark), [&] { check_series(*request.windows, start); });
  errors.throw_if_errors();
}

}  // namespace dtrain
