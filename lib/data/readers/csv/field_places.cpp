#include "data/readers/csv/field_places.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

std::vector<CsvTarget> wanted_targets(const CsvOptions& options, const ReadRequest& request) {
  if (!options.labels)
    return Binding<CsvTarget>{options.target, options.targets}.resolve(request.targets, "target", "targets",
                                                                       request);
  if (request.targets.size() != 1)
    request.fail(
        fmt::format("labels: expected a model with one output, found {} outputs", request.targets.size()));
  return {options.labels->used()};
}

CsvColumnRef column_of_key(const CsvStart& start, const std::string& key, const Mark& mark) {
  int64_t index = 0;
  const bool is_name = std::find(start.names.begin(), start.names.end(), key) != start.names.end();
  if (!is_name && parse_number(key, index) == std::errc()) return {index, "", mark};
  return {{}, key, mark};
}

size_t place_of_field(const CsvStart& start, const CsvColumnRef& field) {
  if (field.index) {
    const auto count = static_cast<int64_t>(start.width());
    const int64_t index = *field.index < 0 ? *field.index + count : *field.index;
    if (index < 0 || index >= count)
      throw UserError(fmt::format("{}: expected a column index from {} to {}, found {}", start.path, -count,
                                  count - 1, *field.index));
    return static_cast<size_t>(index);
  }
  if (start.names.empty())
    throw UserError(fmt::format("{}: expected a column named '{}', found no header; set 'header: true'",
                                start.path, field.name));
  return place_of_column(start.path, field.name, start.names);
}

}  // namespace dtrain
