#include "print/comparison_report.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace dtrain {

namespace {

std::string differences_text(const std::vector<ChangedFact>& facts, const std::string& title) {
  std::string text;
  for (const auto& [name, a, b] : facts)
    text += fmt::format("  {}: {} -> {}\n", name, a.empty() ? "(none)" : a, b.empty() ? "(none)" : b);
  return text.empty() ? "" : fmt::format("\n{}\n{}", title, text);
}

std::string differences_text(const ArrayComparison& arrays, const std::string& title,
                             const ComparisonTitles& titles) {
  std::string text;
  if (!arrays.changed.empty()) {
    std::vector<Table::Column> columns{{"array"}};
    for (const char* name : {"elements", "different", "largest", "relative"})
      columns.push_back({name, Table::Align::right});
    for (const char* distance : ArrayDifference::kDistances)
      columns.push_back(
          {std::string(distance) == "NaN" ? "NaN" : fmt::format("{} ulp", distance), Table::Align::right});
    Table table(columns);
    for (const auto& [name, difference] : arrays.changed) {
      std::vector<std::string> row{
          name, format_count(difference.elements), format_count(difference.different),
          fmt::format("{:.2e}", difference.largest), fmt::format("{:.2e}", difference.relative)};
      for (const int64_t count : difference.distances) row.push_back(count ? format_count(count) : "");
      table.add(std::move(row));
    }
    text += table.str();
  }
  for (const auto& [name, a, b] : arrays.shapes) text += fmt::format("  {}: {} -> {}\n", name, a, b);
  for (const auto& [names, path] :
       {std::pair{&arrays.only_a, &titles.a}, std::pair{&arrays.only_b, &titles.b}})
    for (const std::string& name : *names) text += fmt::format("  {}: only in {}\n", name, *path);
  return text.empty() ? "" : fmt::format("\n{}\n{}", title, text);
}

/// Returns e.g. "different: 3 of 12 weights, 12 of 24 optimizer slots, 2 settings".
std::string verdict(const ModelComparison& found, const ComparisonTitles& titles) {
  const std::string within =
      titles.tolerance > 0 ? fmt::format(" (within {})", titles.tolerance) : std::string();
  const auto count = [](const ArrayComparison& arrays) {
    return static_cast<int64_t>(arrays.changed.size() + arrays.shapes.size() + arrays.only_a.size() +
                                arrays.only_b.size());
  };
  if (found.is_equal())
    return fmt::format("equal{}: {}{}", within, format_plural(found.weights.same, "weight"),
                       found.has_slots ? ", " + format_plural(found.slots.same, "optimizer slot") : "");
  std::vector<std::string> parts;
  const auto add = [&](int64_t different, int64_t same, const char* noun) {
    if (different > 0)
      parts.push_back(
          fmt::format("{} of {}", format_count(different), format_plural(different + same, noun)));
  };
  add(count(found.weights), found.weights.same, "weight");
  add(count(found.slots), found.slots.same, "optimizer slot");
  for (const auto& [facts, noun] : {std::pair{&found.graph, "model setting"},
                                    std::pair{&found.config, "setting"}, std::pair{&found.state, "counter"}})
    if (!facts->empty()) parts.push_back(format_plural(static_cast<int64_t>(facts->size()), noun));
  if (!found.data.empty()) parts.emplace_back("the data");
  std::string text = "different" + within + ": ";
  for (size_t i = 0; i < parts.size(); ++i) text += (i ? ", " : "") + parts[i];
  return text;
}

Json differences_json(const std::vector<ChangedFact>& facts) {
  Json list = Json::array();
  for (const auto& [name, a, b] : facts) list.push(Json::object().set("name", name).set("a", a).set("b", b));
  return list;
}

Json differences_json(const ArrayComparison& arrays) {
  Json changed = Json::array(), only_a = Json::array(), only_b = Json::array();
  for (const auto& [name, difference] : arrays.changed) {
    Json ulps = Json::object();
    for (size_t i = 0; i < difference.distances.size(); ++i)
      ulps.set(ArrayDifference::kDistances[i], difference.distances[i]);
    changed.push(Json::object()
                     .set("name", name)
                     .set("elements", difference.elements)
                     .set("different", difference.different)
                     .set("largest", difference.largest)
                     .set("relative", difference.relative)
                     .set("ulps", std::move(ulps)));
  }
  for (const std::string& name : arrays.only_a) only_a.push(name);
  for (const std::string& name : arrays.only_b) only_b.push(name);
  return Json::object()
      .set("same", arrays.same)
      .set("changed", std::move(changed))
      .set("shapes", differences_json(arrays.shapes))
      .set("only_a", std::move(only_a))
      .set("only_b", std::move(only_b));
}

}  // namespace

std::string comparison_text(const ModelComparison& found, const ComparisonTitles& titles) {
  std::string text = verdict(found, titles) + "\n" + differences_text(found.graph, "model") +
                     differences_text(found.config, "configuration") + differences_text(found.state, "state");
  if (!found.data.empty()) text += "\ndata\n";
  for (const std::string& change : found.data) text += "  " + change + "\n";
  return text + differences_text(found.weights, "weights", titles) +
         differences_text(found.slots, "optimizer slots", titles);
}

Json comparison_json(const ModelComparison& found, const ComparedModel& a, const ComparedModel& b) {
  Json data = Json::array();
  for (const std::string& change : found.data) data.push(change);
  Json json = Json::object().set("a", a.path).set("b", b.path).set("equal", found.is_equal());
  json.set("model", differences_json(found.graph))
      .set("config", differences_json(found.config))
      .set("state", differences_json(found.state));
  json.set("data", std::move(data)).set("weights", differences_json(found.weights));
  if (found.has_slots) json.set("slots", differences_json(found.slots));
  return json;
}

std::string comparison_text(const StepLogComparison& found, const ComparisonTitles& titles) {
  std::string text =
      found.is_equal() ? fmt::format("equal: {}\n", format_plural(found.common, "step")) : "different\n";
  if (found.first)
    text += fmt::format("first    step {}: {:.9g} -> {:.9g}\nsteps    {} of {} differ, by {:.2e} at most\n",
                        found.first->step, found.first->a, found.first->b, format_count(found.different),
                        format_count(found.common), found.largest);
  if (found.only_a) text += fmt::format("{} only in {}\n", format_plural(found.only_a, "step"), titles.a);
  if (found.only_b) text += fmt::format("{} only in {}\n", format_plural(found.only_b, "step"), titles.b);
  return text;
}

Json comparison_json(const StepLogComparison& found) {
  Json json = Json::object().set("equal", found.is_equal()).set("steps", found.common);
  json.set("different", found.different);
  json.set("first", found.first ? Json(found.first->step) : Json()).set("largest", found.largest);
  if (found.first) json.set("a", found.first->a).set("b", found.first->b);
  return json.set("only_a", found.only_a).set("only_b", found.only_b);
}

}  // namespace dtrain
