// The part of CsvPlanner that plans how the values of each column are read.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "data/readers/csv/planner.h"
#include "data/text/make_tokenizer.h"

namespace dtrain {

namespace {

DType csv_type(const TensorSpec& wanted) {
  return wanted.dtype == DType::int32 ? DType::int32 : DType::float32;
}

std::string name_of_target(const TensorSpec& target) {
  return target.name.empty() ? "target" : target.name;
}

/// Returns true if one of `columns` selects field `i` of the training file. `i` is an index into the list of
/// the fields of all inputs.
bool is_any_of(const std::vector<CsvColumnRef>& columns, const FieldNames& training, size_t i) {
  return std::any_of(columns.begin(), columns.end(), [&](const CsvColumnRef& column) {
    if (!column.index) return i < training.inputs.size() && training.inputs[i] == column.name;
    const int64_t index = *column.index + (*column.index < 0 ? static_cast<int64_t>(training.width) : 0);
    return i < training.places.size() && static_cast<int64_t>(training.places[i]) == index;
  });
}

/// Returns the location of the option `dates` or `amounts` for this field.
Mark mark_of_reading(const CsvOptions& options, const CsvStart& start, size_t place) {
  for (const auto& [key, parts] : options.dates)
    if (place_of_field(start, column_of_key(start, key)) == place) return options.dates.mark_of(key);
  for (const CsvColumnRef& field : options.amounts)
    if (place_of_field(start, field) == place) return field.mark;
  return {};
}

std::string advice_for_gap_of_target() {
  return fmt::format("{}; set 'missing_target: skip' to leave out rows without a target", kTargetGap);
}

}  // namespace

void CsvPlanner::choose_readings() {
  for (const auto& [key, parts] : options_.dates) readings_[place_of_key(key)].dates = parts;
  for (const CsvColumnRef& field : options_.amounts) readings_[place_of(field)].amount = true;
  if (options_.indicators)
    for (const CsvColumnRef& field : options_.indicators->columns)
      readings_[place_of(field)].indicator = true;
  ErrorCollector errors;
  for (const auto& [place, reading] : readings_) {
    const bool dates = !reading.dates.empty();
    const bool text = text_column(place, called(place)) != nullptr;
    if (dates + reading.amount + categories_.contains(place) + text > 1)
      errors.attempt(request_.at(mark_of_reading(options_, start_, place)), [&, at = place] {
        request_.fail(
            fmt::format("the column '{}' is listed in more than one of the options 'dates', 'amounts', "
                        "'categories' and 'text'; list it in only one of them",
                        called(at)));
      });
  }
  errors.throw_if_errors();
}

size_t CsvPlanner::place_of_key(const std::string& key) const {
  return place_of_field(start_, column_of_key(start_, key));
}

ColumnReading CsvPlanner::reading_of(size_t place, const std::string& name, bool is_number) const {
  if (!is_first()) {
    const auto known = known_.readings.find(name);
    return known == known_.readings.end() ? ColumnReading() : known->second;
  }
  const auto found = readings_.find(place);
  ColumnReading reading = found == readings_.end() ? ColumnReading() : found->second;
  if (is_number && reading.dates.empty() && options_.indicators && options_.indicators->all)
    reading.indicator.reset();
  return reading;
}

void CsvPlanner::add_reading(size_t place, const std::string& name, const ColumnReading& reading) {
  if (reading == ColumnReading()) return;
  plan_.readings.emplace(place, reading);
  reading_names_.push_back({place, name});
}

ColumnReading CsvPlanner::scalar_reading(const std::string& name, size_t place, const std::string& role) {
  ColumnReading reading = reading_of(place, name, false);
  if (!reading.dates.empty())
    request_.fail_at(
        is_first() ? mark_of_reading(options_, start_, place) : Mark(),
        fmt::format("dates: only input columns can be dates, but '{1}' is the {0} column", role, name));
  reading.indicator = false;
  add_reading(place, name, reading);
  return reading;
}

void CsvPlanner::add_table(size_t field, const std::string& name, bool is_class, CsvCategory::When when) {
  const auto& tables = is_class ? known_.class_names : known_.categories;
  const auto found = tables.find(name);
  CsvCategory category;
  if (found != tables.end()) category.values = found->second;
  category.other = !is_class && options_.unknown == CsvUnknown::other;
  category.when = when;
  plan_.categories.emplace(field, std::move(category));
  table_names_.push_back({field, is_class, name});
}

std::string CsvPlanner::known_name(size_t field, size_t i) const {
  if (i < known_.fields.inputs.size()) return known_.fields.inputs[i];
  if (i < known_.fields.places.size()) return std::to_string(known_.fields.places[i]);
  return called(field);
}

void CsvPlanner::check_texts(const std::vector<std::vector<size_t>>& inputs) const {
  std::vector<std::string> names;
  ErrorCollector errors;
  const auto check = [&](const std::string& key) {
    const size_t place = place_of_key(key);
    if (categories_.contains(place))
      request_.fail(fmt::format(
          "the column '{}' is listed in both 'text' and 'categories'; list it in only one of them", key));
    if (std::none_of(inputs.begin(), inputs.end(), [&](const auto& places) {
          return std::find(places.begin(), places.end(), place) != places.end();
        }))
      request_.fail(fmt::format(
          "text: no input of the model reads the column '{0}'; give 'inputs: {{NAME: [{0}]}}'", key));
    names.push_back(called(place));
  };
  for (const auto& [key, column] : options_.text)
    errors.attempt(request_.at(options_.text.mark_of(key)), [&, name = key] { check(name); });
  errors.throw_if_errors();
  if (!names.empty()) check_has_vocabulary(known_, names);
}

const CsvTextColumn* CsvPlanner::text_column(size_t place, const std::string& name) const {
  if (const CsvTextColumn* named = options_.text.find(name)) return named;
  for (const auto& [key, column] : options_.text)
    if (is_first() && place_of_key(key) == place) return &column;
  return nullptr;
}

bool CsvPlanner::is_text(size_t place, const std::string& name) const {
  return is_first() ? text_column(place, name) != nullptr : known_.tokens.contains(name);
}

void CsvPlanner::add_text(const TensorSpec& input, size_t place, const std::string& name) {
  const CsvTextColumn* column = text_column(place, name);
  if (input.dtype != DType::int32)
    request_.fail_at(
        options_.text.mark_of(name),
        fmt::format("text: the input '{}' gets token ids and must have the dtype int32, but its dtype is {}",
                    input.name, name_of(input.dtype)));
  CsvPart part{{{place, {}}}, DType::int32, false, "", 0};
  part.tokens = column && column->length ? *column->length : input.shape.rank() == 1 ? input.shape[0] : 0;
  if (part.tokens == 0)
    request_.fail_at(
        options_.text.mark_of(name),
        fmt::format("text: give 'length', the number of tokens of '{}'; it cannot be taken from the "
                    "input '{}' of shape {}",
                    name, input.name, input.shape.str()));
  CsvTokens tokens;
  if (column) tokens.options = *column;
  tokens.tokenizer = column ? known_tokenizer(known_, name, *column) : make_tokenizer(known_.tokens.at(name));
  plan_.texts.emplace(place, std::move(tokens));
  token_names_.emplace(place, name);
  plan_.parts.push_back(std::move(part));
}

void CsvPlanner::add_input(const TensorSpec& input, const std::vector<size_t>& places) {
  if (places.size() == 1)
    if (const std::string name = known_name(places[0], inputs_done_); is_text(places[0], name)) {
      ++inputs_done_;
      return add_text(input, places[0], name);
    }
  CsvPart part;
  part.dtype = csv_type(input);
  part.advice_for_gap = advice_for_gap(input);
  bool fitted = false;
  std::vector<std::pair<size_t, std::string>> fills;
  for (const size_t place : places) {
    const bool is_past_target = is_any_of(past_targets_, known_.fields, inputs_done_);
    const std::string name = known_name(place, inputs_done_++);
    CsvElement element{place, {}};
    if (is_text(place, name))
      request_.fail(fmt::format(
          "text: the input '{}' consists of the tokens of the column '{}', so it cannot have other columns",
          input.name, name));
    add_input_reading(input, place, name);
    if (is_category(place, name)) {
      add_table(place, name, false, CsvCategory::When::always);
    } else if (is_past_target) {
      if (options_.missing_target == CsvMissingTarget::skip) plan_.required.insert(place);
      if (options_.fill) part.advice_for_gap = advice_for_gap_of_target();
    } else if (options_.fill) {
      element.gap = fill_of(part.dtype);
      fitted = fitted || (element.gap && !options_.fill->number);
    }
    fills.emplace_back(place, options_.fill ? options_.fill->written : "");
    part.fields.push_back(element);
  }
  if (fitted && request_.use != FileUse::split && !known_.fills.contains(input.name))
    request_.fail(
        fmt::format("fill: the run does not store the {0} of the training split, because it was trained "
                    "without `fill: {0}`; set 'fill' to a number",
                    options_.fill->written));
  if (fitted) fills_[input.name] = std::move(fills);
  plan_.parts.push_back(std::move(part));
}

void CsvPlanner::add_input_reading(const TensorSpec& input, size_t place, const std::string& name) {
  const bool is_float = csv_type(input) == DType::float32;
  const ColumnReading reading = reading_of(place, name, is_float && !is_category(place, name));
  if (!is_float && (!reading.dates.empty() || reading.indicator.value_or(true)))
    request_.fail(fmt::format(
        "{}: this option applies only to float32 inputs, but the column '{}' belongs to the int32 input '{}'",
        reading.dates.empty() ? "indicators" : "dates", name, input.name));
  add_reading(place, name, reading);
}

bool CsvPlanner::is_category(size_t place, const std::string& name) const {
  return categories_.contains(place) || known_.categories.contains(name);
}

std::optional<double> CsvPlanner::fill_of(DType type) const {
  using Limits = std::numeric_limits<int32_t>;
  const auto& number = options_.fill->number;
  if (type == DType::float32) return number.value_or(std::numeric_limits<double>::quiet_NaN());
  const bool fits =
      number && *number == std::floor(*number) && *number >= Limits::min() && *number <= Limits::max();
  return fits ? number : std::nullopt;
}

std::string CsvPlanner::advice_for_gap(const TensorSpec& input) const {
  const bool is_float = csv_type(input) == DType::float32;
  if (!options_.fill)
    return !is_float ? "set 'fill' to a whole number to replace missing values"
           : request_.use != FileUse::split
               ? "set 'fill' to a number to replace missing values"
               : "set 'fill' to mean, median or a number to replace missing values";
  if (is_float) return "";
  return fmt::format("the input '{}' is int32, so 'fill' must be a whole number, not {}", input.name,
                     options_.fill->written);
}

void CsvPlanner::add_target(const TensorSpec& target, const std::vector<size_t>& places) {
  const std::string name = name_of_target(target);
  using When = CsvCategory::When;
  const DType type = csv_type(target);
  const bool is_single = places.size() == 1;
  const auto& names = known_.fields.targets;
  CsvPart part{{}, type, is_single, advice_for_gap_of_target()};
  for (const size_t place : places) {
    const size_t i = targets_done_++;
    const ColumnReading reading =
        scalar_reading(i < names.size() ? names[i] : called(place), place, "target");
    part.fields.push_back({place, {}});
    if (!is_single) continue;  // a target of several columns has numbers, not classes
    if (known_.class_names.contains(name) || categories_.contains(place))
      add_table(place, name, true, When::always);
    else if (is_first() && !reading.amount)  // for other files, the facts have the class names
      add_table(place, name, true, type == DType::int32 ? When::some_are_names : When::all_are_names);
  }
  plan_.parts.push_back(std::move(part));
}

void CsvPlanner::add_labels(const TensorSpec& target, const std::vector<size_t>& places) {
  if (csv_type(target) != DType::float32)
    request_.fail(
        "labels: the target is 0 or 1 for each label, but the loss needs a class number; use a loss such as "
        "binary_crossentropy");
  CsvPart part;
  part.advice_for_gap = kTargetGap;
  for (const size_t place : places) part.fields.push_back({place, {}});
  plan_.parts.push_back(std::move(part));
  const std::string name = name_of_target(target);
  if (options_.labels->column) {
    add_table(places[0], name, true, CsvCategory::When::always);
    plan_.categories.at(places[0]).separator = options_.labels->separator[0];
    return;
  }
  for (const size_t place : places) label_names_[name].push_back(called(place));
}

}  // namespace dtrain
