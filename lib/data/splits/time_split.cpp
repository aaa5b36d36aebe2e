#include "data/splits/time_split.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace dtrain {

namespace {

/// Returns the columns by which rows are ordered. Readers append them after all other columns of `held`.
OrderColumns order_columns(const WindowsOptions& options, const CachedColumns& held,
                           const std::string& source) {
  OrderColumns columns{
      nullptr, nullptr, held.first, source, options.by.value_or(""), options.time.value_or("")};
  size_t last = held.columns.size();
  if (options.time) columns.time = held.columns[--last].get();
  if (options.by) columns.by = held.columns[--last].get();
  return columns;
}

}  // namespace

TimeSplit time_split(const DatasetSpec& spec, const SplitSpec& split) {
  TimeSplit found;
  const std::string own = spec.name_of(split);
  const std::string of = split.drawn ? split.drawn->of : own;
  for (const char* name : kSplitNames) {
    const SplitSpec* other = spec.find(name);
    const bool is_drawn = other && other->drawn && other->drawn->of == of;
    if (!is_drawn && name != of) continue;
    std::vector<double>& fractions = found.parts.fractions;
    if (!is_drawn) found.parts.rest = fractions.size();
    if (name == own) found.parts.wanted = fractions.size();
    fractions.push_back(is_drawn ? other->drawn->fraction : 0);
    if (is_drawn)
      found.words += fmt::format("{}{} {}", found.words.empty() ? "" : ", ", name, other->drawn->fraction);
  }
  if (found.parts.fractions.size() < 2) return {};
  found.words = fmt::format("{} of '{}' by time: {}", split.drawn ? "drawn" : "left", of, found.words);
  return found;
}

std::shared_ptr<const Windows> windows_of_split(const DatasetSpec& spec, const SplitSpec& split,
                                                const CachedColumns& held, DataSource& source,
                                                size_t inputs) {
  const WindowsOptions& options = *split.windows;
  TimeSplit time = time_split(spec, split);
  source.drawn = std::move(time.words);
  const OrderColumns columns = order_columns(options, held, fmt::format("{}", fmt::join(source.paths, ", ")));
  return std::make_shared<const Windows>(
      windows_of_part(sort_series(columns, source.from, source.to), options, time.parts, inputs));
}

std::shared_ptr<const Windows> windows_of_file(const WindowsOptions& options, const CachedColumns& held,
                                               const std::string& path, size_t inputs, size_t targets,
                                               bool are_labeled) {
  if (held.columns.size() != inputs + targets + options.key_columns())
    throw UserError(fmt::format(
        "{}: the file must also contain {}, which the run's windows need, but this file format can contain "
        "only the inputs",
        path,
        options.by && options.time ? fmt::format("'{}' and '{}'", *options.by, *options.time)
                                   : fmt::format("'{}'", options.by ? *options.by : *options.time)));
  SeriesRows series = sort_series(order_columns(options, held, path), 0, held.total);
  return std::make_shared<const Windows>(are_labeled
                                             ? windows_of_part(std::move(series), options, {}, inputs)
                                             : windows_of_forecasts(std::move(series), options, inputs));
}

}  // namespace dtrain
