#include "data/readers/csv_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "data/readers/csv_values.h"

namespace dtrain {

namespace {

DType csv_type(const TensorSpec& wanted) {
  return wanted.dtype == DType::int32 ? DType::int32 : DType::float32;
}

std::string name_of_target(const TensorSpec& target) {
  return target.name.empty() ? "target" : target.name;
}

}  // namespace

size_t place_of_field(const CsvStart& start, const CsvColumnRef& field) {
  if (field.index) {
    const auto count = static_cast<int64_t>(start.width());
    const int64_t index = *field.index < 0 ? *field.index + count : *field.index;
    if (index < 0 || index >= count)
      throw UserError(fmt::format("{}: expected a column from {} to {}, found {}", start.path, -count,
                                  count - 1, *field.index));
    return static_cast<size_t>(index);
  }
  if (start.names.empty())
    throw UserError(fmt::format("{}: expected a column named '{}', found no header (set header: true)",
                                start.path, field.name));
  return place_of_column(start.path, field.name, start.names);
}

CsvPlan CsvPlanner::plan() {
  const std::vector<std::vector<size_t>> inputs = choose_inputs();
  const std::vector<size_t> targets = choose_targets();
  // Where the run knows its data, they are what they were.
  if (is_first())
    for (const CsvColumnRef& name : options_.categories) categories_.insert(place_of(name));
  if (!request_.for_prediction)  // the model has the inputs that it has
    plan_.advice = "list the column in 'categories' where its values are names, or in 'drop' to leave it out";
  for (size_t i = 0; i < inputs.size(); ++i) add_input(request_.inputs[i], inputs[i]);
  for (size_t i = 0; i < targets.size(); ++i) add_target(request_.targets[i], targets[i]);
  choose_weight_and_id();
  return std::move(plan_);
}

void CsvPlanner::choose_weight_and_id() {
  if (options_.weight && !request_.for_prediction) {
    plan_.weight = place_of(*options_.weight, known_.fields.weight);
    if (!start_.names.empty()) fields_.weight = called(*plan_.weight);
  }
  if (options_.id) {
    plan_.id = find(*options_.id, known_.fields.id);
    if (plan_.id && !start_.names.empty()) fields_.id = called(*plan_.id);
  }
}

SourceFacts CsvPlanner::facts(const CsvColumns& columns) const {
  SourceFacts facts = known_;
  if (is_first()) facts.fields = fields_;
  for (const auto& [field, is_class, name] : table_names_)
    if (const auto table = columns.categories.find(field); table != columns.categories.end())
      (is_class ? facts.class_names : facts.categories).try_emplace(name, table->second);
  for (const auto& [input, fills] : fills_) {
    auto& all = facts.fills[input];
    all.clear();
    for (const auto& [field, fill] : fills) {
      const auto table = columns.categories.find(field);
      all.insert(all.end(), table == columns.categories.end() ? 1 : table->second.size(),
                 table == columns.categories.end() ? fill : "");
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
  if (options_.target) take(*options_.target);
  for (const auto& [name, field] : options_.targets) take(field);
  for (const auto* one : {&options_.id, &options_.weight})
    if (*one) take(**one);
  for (const CsvColumnRef& field : options_.drop) take(field);
  for (const auto& [name, fields] : options_.inputs)
    for (const CsvColumnRef& field : fields) take(field);
  std::vector<size_t> all;
  for (size_t i = 0; i < width(); ++i)
    if (!taken.contains(i)) all.push_back(i);
  if (all.empty())
    throw UserError(fmt::format("{}: expected columns besides the target, found none", start_.path));
  return all;
}

std::vector<std::vector<size_t>> CsvPlanner::own_inputs() const {
  for (const auto& [name, fields] : options_.inputs)
    if (std::none_of(request_.inputs.begin(), request_.inputs.end(),
                     [&, n = name](const TensorSpec& input) { return input.name == n; }))
      request_.fail("'inputs' names '" + name + "', which the model does not have");
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
    } else if (++unnamed > 1) {
      request_.fail(fmt::format("nothing is read for the model's '{}'; give 'inputs: {{{}: [...]}}'",
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
  for (const auto& [name, fields] : options_.inputs) named += fields.size();
  for (const TensorSpec& input : request_.inputs) {
    const CsvColumnRefs* fields = options_.inputs.find(input.name);
    counts.push_back(fields ? fields->size() : total - std::min(total, named));
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
  if (width() == used.size()) {  // the others are left out, those that are there stand in the same order
    std::vector<size_t> places;
    for (const size_t place : known)
      places.push_back(static_cast<size_t>(std::distance(used.begin(), used.find(place))));
    return places;
  }
  if (width() != known_.fields.width)
    throw UserError(fmt::format("{}: expected {} values a line, or {} as in the training file, found {}",
                                start_.path, used.size(), known_.fields.width, width()));
  return known;
}

std::vector<std::vector<size_t>> CsvPlanner::choose_inputs() {
  if (by_name()) {
    std::vector<size_t> places;
    for (const std::string& name : known_.fields.inputs)
      places.push_back(place_of_column(start_.path, name, start_.names));
    return cut(places);
  }
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

std::vector<size_t> CsvPlanner::choose_targets() {
  std::vector<size_t> places;
  if (request_.targets.empty()) return places;
  const auto fields = Binding<CsvColumnRef>{options_.target, options_.targets}.resolve(
      request_.targets, "target", "targets", request_);
  const std::vector<std::string>& known = known_.fields.targets;
  for (size_t i = 0; i < fields.size(); ++i)
    places.push_back(place_of(fields[i], i < known.size() ? known[i] : ""));
  if (!start_.names.empty())
    for (const size_t place : places) fields_.targets.push_back(start_.names[place]);
  return places;
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

void CsvPlanner::add_input(const TensorSpec& input, const std::vector<size_t>& places) {
  CsvPart part;
  part.dtype = csv_type(input);
  part.advice_for_gap = advice_for_gap(input);
  bool fitted = false;
  std::vector<std::pair<size_t, std::string>> fills;
  for (const size_t place : places) {
    const std::string name = known_name(place, inputs_done_++);
    CsvElement element{place, {}};
    if (is_category(place, name)) {
      add_table(place, name, false, CsvCategory::When::always);
    } else if (options_.fill) {
      element.gap = fill_of(part.dtype);
      fitted = fitted || (element.gap && !options_.fill->number);
    }
    fills.emplace_back(place, options_.fill ? options_.fill->written : "");
    part.fields.push_back(element);
  }
  if (fitted && request_.for_prediction && !known_.fills.contains(input.name))
    request_.fail(fmt::format(
        "fill: the run was trained without it, and has no {} of its training split; give a number",
        options_.fill->written));
  if (fitted) fills_[input.name] = std::move(fills);
  plan_.parts.push_back(std::move(part));
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
    return !is_float                 ? "a gap becomes what 'fill' says: a whole number"
           : request_.for_prediction ? "a gap becomes the number that 'fill' says"
                                     : "a gap becomes what 'fill' says: mean, median or a number";
  if (is_float) return "";
  return fmt::format("the input '{}' is of int32, whose gaps 'fill' can make a whole number, not {}",
                     input.name, options_.fill->written);
}

void CsvPlanner::add_target(const TensorSpec& target, size_t place) {
  const std::string name = name_of_target(target);
  using When = CsvCategory::When;
  const DType type = csv_type(target);
  if (known_.class_names.contains(name) || categories_.contains(place))
    add_table(place, name, true, When::always);
  else if (is_first())  // where the run knows its data, they are what they were
    add_table(place, name, true, type == DType::int32 ? When::some_are_names : When::all_are_names);
  plan_.parts.push_back({{{place, {}}}, type, true, "a target must have a value in every row"});
}

}  // namespace dtrain
