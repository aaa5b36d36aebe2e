#include "data/readers/csv/planner.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/name_list.h"
#include "base/text.h"
#include "config/diagnostics.h"
#include "data/readers/csv/column_check.h"

namespace dtrain {

CsvPlan CsvPlanner::plan() {
  check_columns(options_, request_, start_);
  const std::vector<std::vector<size_t>> inputs = choose_inputs();
  const std::vector<std::vector<size_t>> targets = choose_targets();
  // The options determine the categories and the ColumnReadings only for the training file. For other files,
  // the facts about the training file determine them.
  if (is_first()) {
    for (const CsvColumnRef& name : options_.categories) categories_.insert(place_of(name));
    check_texts(inputs);
    choose_readings();
  }
  plan_.day_first = options_.dayfirst.value_or(false);
  if (request_.use == FileUse::split)  // a trained model cannot change its inputs
    plan_.advice = "list the column in 'categories' if its values are names, or in 'drop' to leave it out";
  if (request_.use == FileUse::prediction && request_.windows && request_.windows->has_past_targets())
    past_targets_ = options_.target_columns();
  for (size_t i = 0; i < inputs.size(); ++i) add_input(request_.inputs[i], inputs[i]);
  if (options_.labels && !targets.empty())
    add_labels(request_.targets[0], targets[0]);
  else
    for (size_t i = 0; i < targets.size(); ++i) add_target(request_.targets[i], targets[i]);
  const bool may_be_empty = options_.labels && options_.labels->column;  // a sample may have no labels
  if (options_.missing_target == CsvMissingTarget::skip && !may_be_empty)
    for (const auto& places : targets) plan_.required.insert(places.begin(), places.end());
  choose_weight_and_id();
  if (request_.windows) choose_order();
  return std::move(plan_);
}

void CsvPlanner::choose_order() {
  const WindowsOptions& windows = *request_.windows;
  if (windows.by) plan_.series = place_of_order(*windows.by);
  if (!windows.time) return;
  plan_.time = place_of_order(*windows.time);
  const std::string name = called(*plan_.time);
  ColumnReading reading = reading_of(*plan_.time, name, false);
  const CsvValues values(options_.format().notation);
  if (is_first() && reading.dates.empty() && !values.number(start_.first[*plan_.time]))
    reading.dates = {DatePart::days};
  add_reading(*plan_.time, name, reading);
}

size_t CsvPlanner::place_of_order(const std::string& key) const {
  if (is_other_file() && start_.names.empty() && width() != known_.fields.width)
    throw UserError(fmt::format("{}: expected {} values per line as in the training file, found {}",
                                start_.path, known_.fields.width, width()));
  return place_of_key(key);
}

bool CsvPlanner::is_named_feature(size_t place) const {
  return std::any_of(options_.dates.begin(), options_.dates.end(),
                     [&](const auto& date) { return place_of_key(date.first) == place; }) ||
         std::any_of(options_.categories.begin(), options_.categories.end(),
                     [&](const CsvColumnRef& category) { return place_of(category) == place; });
}

void CsvPlanner::choose_weight_and_id() {
  if (options_.weight && request_.use != FileUse::prediction)
    plan_.weight = find(*options_.weight, known_.fields.weight);
  if (plan_.weight) {
    if (!start_.names.empty()) fields_.weight = called(*plan_.weight);
    scalar_reading(known_.fields.weight.empty() ? called(*plan_.weight) : known_.fields.weight, *plan_.weight,
                   "weight");
  }
  if (options_.id) {
    plan_.id = find(*options_.id, known_.fields.id);
    // A file for predictions need not have the id column of the training file. But if --set selects a
    // different column, the file must have this column.
    if (!plan_.id && by_name() && !options_.id->index && options_.id->name != known_.fields.id)
      plan_.id = place_of_column(start_.path, options_.id->name, start_.names);
  } else if (start_.has_row_names) {
    plan_.id = 0;
  }
  if (plan_.id && !start_.names.empty()) fields_.id = called(*plan_.id);
}

SourceFacts CsvPlanner::facts(const CsvColumns& columns) const {
  SourceFacts facts = known_;
  if (is_first()) {
    facts.fields = fields_;
    std::erase_if(facts.tokens, [&](const auto& known) {  // vocabularies of columns that are not used
      return std::none_of(token_names_.begin(), token_names_.end(),
                          [&](const auto& used) { return used.second == known.first; });
    });
  }
  for (const auto& [field, is_class, name] : table_names_)
    if (const auto table = columns.categories.find(field); table != columns.categories.end())
      (is_class ? facts.class_names : facts.categories).try_emplace(name, table->second);
  for (const auto& [target, names] : label_names_) facts.class_names.try_emplace(target, names);
  for (const auto& [field, name] : reading_names_)
    if (const ColumnReading& reading = columns.readings.at(field); reading != ColumnReading())
      facts.readings.try_emplace(name, reading);
  for (const auto& [field, name] : token_names_) facts.tokens.try_emplace(name, columns.tokens.at(field));
  for (const auto& [input, fills] : fills_) {
    auto& all = facts.fills[input];
    all.clear();
    for (const auto& [field, fill] : fills) {
      const auto table = columns.categories.find(field);
      const auto found = columns.readings.find(field);
      const ColumnReading reading = found == columns.readings.end() ? ColumnReading() : found->second;
      all.insert(all.end(),
                 table == columns.categories.end() ? std::max<size_t>(1, reading.dates.size())
                                                   : table->second.size(),
                 table == columns.categories.end() ? fill : "");
      if (*reading.indicator) all.emplace_back();
    }
  }
  return facts;
}

std::string CsvPlanner::called(size_t field) const {
  return start_.names.empty() ? std::to_string(field) : start_.names[field];
}

size_t CsvPlanner::place_of(const CsvColumnRef& field, const std::string& name) const {
  if (field.index && by_name() && !name.empty()) return place_of_column(start_.path, name, start_.names);
  return place_of_field(start_, field);
}

std::optional<size_t> CsvPlanner::find(const CsvColumnRef& field, const std::string& name) const {
  if (!is_other_file()) return place_of(field, name);
  if (field.index && !by_name())
    return width() == known_.fields.width ? std::optional(place_of_field(start_, field)) : std::nullopt;
  const std::string& wanted = field.index ? name : field.name;
  const auto found = std::find(start_.names.begin(), start_.names.end(), wanted);
  if (found == start_.names.end() || wanted.empty()) return std::nullopt;
  return static_cast<size_t>(found - start_.names.begin());
}

std::vector<size_t> CsvPlanner::all_others() const {
  std::set<size_t> taken;
  const auto take = [&](const CsvColumnRef& field) {
    if (const auto place = find(field)) taken.insert(*place);
  };
  const WindowsOptions* windows = request_.windows;
  if (!windows || !windows->has_past_targets())
    for (const CsvColumnRef& field : options_.target_columns()) take(field);
  const auto take_order = [&](const std::optional<std::string>& key) {
    if (!key) return;
    const size_t place = place_of_order(*key);
    if (!is_named_feature(place)) taken.insert(place);
  };
  if (windows) {
    take_order(windows->by);
    take_order(windows->time);
  }
  for (const auto* one : {&options_.id, &options_.weight})
    if (*one) take(**one);
  for (const CsvColumnRef& field : options_.drop) take(field);
  for (const auto& [name, fields] : options_.inputs)
    for (const CsvColumnRef& field : fields) take(field);
  for (const auto& [key, column] : options_.text) taken.insert(place_of_key(key));
  if (start_.has_row_names) taken.insert(0);
  std::vector<size_t> all;
  for (size_t i = 0; i < width(); ++i)
    if (!taken.contains(i)) all.push_back(i);
  if (all.empty())
    throw UserError(fmt::format(
        "{}: no column is left for the model's input, because other options use all columns", start_.path));
  return all;
}

std::vector<std::vector<size_t>> CsvPlanner::own_inputs() const {
  for (const auto& [name, fields] : options_.inputs)
    if (std::none_of(request_.inputs.begin(), request_.inputs.end(),
                     [&, n = name](const TensorSpec& input) { return input.name == n; }))
      request_.fail_at(options_.inputs.mark_of(name),
                       fmt::format("'inputs' contains '{}', but the model has no input with this name{}",
                                   name, suggestion_or_list(name, spec_names(request_.inputs))));
  std::vector<std::vector<size_t>> all;
  const auto places = [&](const std::vector<CsvColumnRef>& fields) {
    std::vector<size_t> some;
    for (const CsvColumnRef& field : fields) some.push_back(place_of_field(start_, field));
    return some;
  };
  size_t unnamed = 0;
  for (const TensorSpec& input : request_.inputs) {
    if (const CsvColumnRefs* named = options_.inputs.find(input.name)) {
      all.push_back(places(*named));
    } else if (const std::string* text = text_of_input(options_, request_.inputs, input)) {
      all.push_back({place_of_key(*text)});
    } else if (++unnamed > 1) {
      request_.fail(fmt::format("no column is read for the model's input '{}'; give 'inputs: {{{}: [...]}}'",
                                input.name, input.name));
    } else {
      all.push_back(options_.columns.empty() ? all_others() : places(options_.columns));
    }
  }
  return all;
}

std::vector<size_t> CsvPlanner::counts_of_inputs(size_t total) const {
  std::vector<size_t> counts;
  size_t named = 0;
  // Returns the number of fields of an input; 0 for the input that gets all remaining columns.
  const auto count_of = [&](const TensorSpec& input) -> size_t {
    if (const CsvColumnRefs* fields = options_.inputs.find(input.name)) return fields->size();
    return text_of_input(options_, request_.inputs, input) ? 1 : 0;
  };
  for (const TensorSpec& input : request_.inputs) named += count_of(input);
  for (const TensorSpec& input : request_.inputs) {
    const size_t count = count_of(input);
    counts.push_back(count > 0 ? count : total - std::min(total, named));
  }
  return counts;
}

std::vector<std::vector<size_t>> CsvPlanner::cut(const std::vector<size_t>& places) const {
  std::vector<std::vector<size_t>> all;
  size_t at = 0;
  for (const size_t count : counts_of_inputs(places.size())) {
    all.emplace_back();
    for (size_t i = 0; i < count && at < places.size(); ++i) all.back().push_back(places[at++]);
  }
  return all;
}

std::vector<size_t> CsvPlanner::places_to_predict_from() const {
  const std::vector<size_t>& known = known_.fields.places;
  const std::set<size_t> used(known.begin(), known.end());
  if (width() == used.size()) {  // the file has only the columns of the inputs, in the same order
    std::vector<size_t> places;
    for (const size_t place : known)
      places.push_back(static_cast<size_t>(std::distance(used.begin(), used.find(place))));
    return places;
  }
  if (width() != known_.fields.width)
    throw UserError(fmt::format(
        "{}: expected {} per line (only inputs) or {} (all columns of the training file), found {}",
        start_.path, format_plural(static_cast<int64_t>(used.size()), "value"), known_.fields.width,
        width()));
  return known;
}

std::vector<std::vector<size_t>> CsvPlanner::choose_inputs() {
  if (by_name()) return cut(places_of_columns(start_.path, known_.fields.inputs, start_.names));
  if (is_other_file()) return cut(places_to_predict_from());
  auto inputs = own_inputs();
  fields_.width = width();
  for (const auto& of_input : inputs)
    for (const size_t place : of_input) {
      fields_.places.push_back(place);
      if (!start_.names.empty()) fields_.inputs.push_back(start_.names[place]);
    }
  return inputs;
}

size_t CsvPlanner::place_of_target(const CsvColumnRef& field, const std::string& name) const {
  if (!is_other_file()) return place_of(field, name);
  if (const auto place = find(field, name)) return *place;
  if (!by_name())
    throw UserError(fmt::format("{}: expected {} values per line, including the target, found {}",
                                start_.path, known_.fields.width, width()));
  const std::string& wanted = field.index ? name : field.name;
  const std::string meant = suggestion(wanted, start_.names);
  throw UserError(
      fmt::format("{}: expected the target in a column named '{}'{} found the columns {}; `dtrain predict` "
                  "also reads files without a target",
                  start_.path, wanted, meant.empty() ? "," : meant, list_some(start_.names, 20)));
}

std::vector<std::vector<size_t>> CsvPlanner::choose_targets() {
  std::vector<std::vector<size_t>> all;
  if (request_.targets.empty()) return all;
  const std::vector<std::string>& known = known_.fields.targets;
  size_t next = 0;
  for (const CsvTarget& target : wanted_targets(options_, request_)) {
    all.emplace_back();
    for (const CsvColumnRef& field : target) {
      all.back().push_back(place_of_target(field, next < known.size() ? known[next] : ""));
      ++next;
      if (!start_.names.empty()) fields_.targets.push_back(start_.names[all.back().back()]);
    }
  }
  return all;
}

}  // namespace dtrain
