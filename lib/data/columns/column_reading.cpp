#include "data/columns/column_reading.h"

#include <string_view>

#include "data/enum_json.h"

namespace dtrain {

namespace {

bool is_true(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  return found && found->as_bool();
}

}  // namespace

Json ColumnReading::to_json() const {
  Json json = Json::object();
  if (amount) json.set("amount", true);
  if (!dates.empty()) {
    Json parts = Json::array();
    for (const DatePart part : dates) parts.push(enum_text(part));
    json.set("dates", std::move(parts));
  }
  if (form) json.set("day_first", form->day_first).set("numbers", enum_text(form->numbers));
  if (indicator.value_or(false)) json.set("indicator", true);
  return json;
}

ColumnReading ColumnReading::from_json(const Json& json) {
  ColumnReading reading;
  reading.amount = is_true(json, "amount");
  reading.indicator = is_true(json, "indicator");
  const Json* dates = json.find("dates");
  if (!dates) return reading;
  for (const Json& part : dates->items()) reading.dates.push_back(enum_from<DatePart>(part));
  reading.form = DateForm{is_true(json, "day_first"), enum_from<DateNumbers>(json.at("numbers"))};
  return reading;
}

}  // namespace dtrain
