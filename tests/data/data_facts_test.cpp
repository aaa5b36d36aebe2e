#include "data/data_facts.h"

#include <doctest/doctest.h>

#include "data/columns/source_columns.h"
#include "data/support.h"

namespace dtrain::test {

TEST_CASE("facts about data are written to JSON and read back unchanged") {
  DataFacts facts;
  CHECK(facts.empty());
  CHECK(DataFacts::from_json(Json::parse(facts.to_json().dump())) == facts);
  facts.source.fields = {{"a", "b\xff"}, {"c"}, {2, 0}, 3};
  facts.source.class_names["target"] = {"cat", "dog"};
  facts.source.categories["colour"] = {"", "blue", "red"};
  facts.source.fills["x"] = {"mean", "", "0.5"};
  facts.fitted["x"] = {{"standardize", {{"mean", {1.0 / 3, -0.0}}, {"deviation", {5e-324, 1e300}}}},
                       {"fill", {}}};
  facts.split_seed = ~uint64_t{0};
  CHECK(DataFacts::from_json(Json::parse(facts.to_json().dump())) == facts);
  CHECK_THROWS_AS(DataFacts::from_json(Json::parse(R"({"class_names": ["cat"]})")), UserError);
  CHECK_THROWS_AS(DataFacts::from_json(Json::parse(R"({"fitted": {"x": [{"kind": 1}]}})")), UserError);
}

TEST_CASE("text_column() holds texts of any length") {
  const auto column = text_column("id", {"a", "", "long one"});
  CHECK(column->spec().name == "id");
  CHECK(column->size() == 3);
  CHECK(text_of(*column, 0) == "a");
  CHECK(text_of(*column, 1).empty());
  CHECK(text_of(*column, 2) == "long one");
}

}  // namespace dtrain::test
