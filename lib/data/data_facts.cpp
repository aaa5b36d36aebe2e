#include "data/data_facts.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

Json json_of_strings(const std::vector<std::string>& strings) {
  Json all = Json::array();
  for (const std::string& one : strings) all.push(one);
  return all;
}

std::vector<std::string> strings_of(const Json& json) {
  std::vector<std::string> all;
  for (const Json& one : json.items()) all.push_back(one.as_string());
  return all;
}

Json json_of_names(const SourceFacts::Names& names) {
  Json all = Json::object();
  for (const auto& [key, strings] : names) all.set(key, json_of_strings(strings));
  return all;
}

SourceFacts::Names names_from(const Json& holder, std::string_view key) {
  SourceFacts::Names names;
  if (const Json* json = holder.find(key))
    for (const auto& [name, strings] : json->entries()) names[name] = strings_of(strings);
  return names;
}

Json json_of_step(const FittedStep& step) {
  Json numbers = Json::object();
  for (const auto& [name, values] : step.numbers) {
    Json all = Json::array();
    for (const double value : values) all.push(value);
    numbers.set(name, std::move(all));
  }
  Json json = Json::object().set("kind", step.kind).set("numbers", std::move(numbers));
  return step.chain.empty() ? json : json.set("chain", step.chain);
}

FittedStep step_from(const Json& json) {
  FittedStep step{json.at("kind").as_string(), {}};
  for (const auto& [name, values] : json.at("numbers").entries())
    for (const Json& value : values.items()) step.numbers[name].push_back(value.as_double());
  if (const Json* chain = json.find("chain")) step.chain = chain->as_string();
  return step;
}

}  // namespace

Json FieldNames::to_json() const {
  Json json = Json::object().set("inputs", json_of_strings(inputs)).set("targets", json_of_strings(targets));
  if (!id.empty()) json.set("id", id);
  if (!weight.empty()) json.set("weight", weight);
  if (width == 0) return json;
  Json all = Json::array();
  for (const size_t place : places) all.push(place);
  return json.set("places", std::move(all)).set("width", width);
}

FieldNames FieldNames::from_json(const Json& json) {
  FieldNames fields;
  fields.inputs = strings_of(json.at("inputs"));
  fields.targets = strings_of(json.at("targets"));
  if (const Json* id = json.find("id")) fields.id = id->as_string();
  if (const Json* weight = json.find("weight")) fields.weight = weight->as_string();
  if (const Json* places = json.find("places")) {
    fields.width = static_cast<size_t>(json.at("width").as_int());
    for (const Json& place : places->items()) {
      fields.places.push_back(static_cast<size_t>(place.as_int()));
      if (fields.places.back() >= fields.width)
        throw UserError(fmt::format("expected a column index below {} (the number of columns), found {}",
                                    fields.width, fields.places.back()));
    }
  }
  return fields;
}

bool SourceFacts::empty() const {
  return fields == FieldNames() && class_names.empty() && categories.empty() && fills.empty() &&
         readings.empty() && tokens.empty();
}

Json SourceFacts::to_json() const {
  Json json = Json::object();
  if (fields != FieldNames()) json.set("fields", fields.to_json());
  if (!class_names.empty()) json.set("class_names", json_of_names(class_names));
  if (!categories.empty()) json.set("categories", json_of_names(categories));
  if (!fills.empty()) json.set("fills", json_of_names(fills));
  if (!readings.empty()) {
    Json all = Json::object();
    for (const auto& [column, reading] : readings) all.set(column, reading.to_json());
    json.set("readings", std::move(all));
  }
  if (!tokens.empty()) {
    Json all = Json::object();
    for (const auto& [column, learned] : tokens) all.set(column, learned.to_json());
    json.set("tokens", std::move(all));
  }
  return json;
}

SourceFacts SourceFacts::from_json(const Json& json) {
  SourceFacts facts;
  if (const Json* fields = json.find("fields")) facts.fields = FieldNames::from_json(*fields);
  facts.class_names = names_from(json, "class_names");
  facts.categories = names_from(json, "categories");
  facts.fills = names_from(json, "fills");
  if (const Json* readings = json.find("readings"))
    for (const auto& [column, reading] : readings->entries())
      facts.readings[column] = ColumnReading::from_json(reading);
  if (const Json* tokens = json.find("tokens"))
    for (const auto& [column, learned] : tokens->entries())
      facts.tokens[column] = LearnedTokens::from_json(learned);
  return facts;
}

Json DataFacts::to_json() const {
  Json json = source.to_json();
  if (!fitted.empty()) {
    Json columns = Json::object();
    for (const auto& [column, steps] : fitted) {
      Json all = Json::array();
      for (const FittedStep& step : steps) all.push(json_of_step(step));
      columns.set(column, std::move(all));
    }
    json.set("fitted", std::move(columns));
  }
  if (split_seed) json.set("split_seed", std::to_string(*split_seed));  // JSON numbers hold only 53 bits
  return json;
}

DataFacts DataFacts::from_json(const Json& json) {
  DataFacts facts{SourceFacts::from_json(json), {}, {}};
  if (const Json* columns = json.find("fitted"))
    for (const auto& [column, steps] : columns->entries())
      for (const Json& step : steps.items()) facts.fitted[column].push_back(step_from(step));
  if (const Json* seed = json.find("split_seed"))
    facts.split_seed = std::strtoull(seed->as_string().c_str(), nullptr, 10);
  return facts;
}

}  // namespace dtrain
