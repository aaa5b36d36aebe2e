// Files named on the command line: JSON lines, and several files as one data set.
#include <doctest/doctest.h>

#include "data/json_lines.h"
#include "data/support.h"

namespace dtrain::test {

namespace {

const TensorSpec kPair{"x", {2}};

}  // namespace

TEST_CASE("JSON lines become a table") {
  CHECK(is_json_lines(" \n{\"a\": 1}"));
  CHECK(is_json_lines("[1, 2]"));
  CHECK_FALSE(is_json_lines("a,b\n"));
  const TableText objects = table_of_json_lines(
      "{\"a\": 1.5, \"b\": \"x, \\\"y\\\"\"}\n\n{\"b\": null, \"c\": true, \"a\": -2}\n", "in.jsonl");
  CHECK(objects.has_header);
  CHECK(objects.text == "\"a\",\"b\",\"c\"\n1.5,\"x, \"\"y\"\"\",\n-2,,true\n");
  const TableText arrays = table_of_json_lines("[1, 2]\n[3, null]", "in.jsonl");
  CHECK_FALSE(arrays.has_header);
  CHECK(arrays.text == "1,2\n3,\n");
  const auto refusal = [](const std::string& text) {
    return error_of([&] { table_of_json_lines(text, "in.jsonl"); });
  };
  CHECK(contains(refusal("{}\n[]\n"), "in.jsonl:2: expected an object as in the first line"));
  CHECK(contains(refusal("{\"a\": 1}\n{\"a\": {}}\n"), "in.jsonl:2: expected a number or a text for 'a'"));
  CHECK(contains(refusal("[1\n"), "in.jsonl:1: expected a line of JSON"));
}

TEST_CASE("several files are one data set, in their order") {
  const TempFolder folder;
  write_file(folder / "a-1.csv", "1,2\n3,4\n");
  write_file(folder / "a-2.csv", "5,6\n");
  write_file(folder / "b.jsonl", "[7, 8]\n[9, 10]\n");
  const DatasetSpec spec;
  const auto paths = find_given_paths({folder / "b.jsonl", folder / "a-*.csv"});
  CHECK(paths == std::vector<std::string>{folder / "b.jsonl", folder / "a-1.csv", folder / "a-2.csv"});
  const auto data = open_inputs(open_given_files(paths), spec, {kPair}, {});
  REQUIRE(data->size() == 5);
  CHECK(read_all(*data, 0) == std::vector<double>{7, 8, 9, 10, 1, 2, 3, 4, 5, 6});
  const std::vector<int64_t> rows{4, 0, 2, 3};
  std::vector<float> found(8);
  data->read_column(0, {rows}, found.data());
  CHECK(found == std::vector<float>{5, 6, 7, 8, 1, 2, 3, 4});
  CHECK(data->sample_id(4) == "4");
  CHECK(contains(error_of([&] { find_given_paths({folder / "c-*"}); }), "expected files that match it"));
  CHECK(contains(error_of([&] { open_given_files({"-", "-"}); }), "standard input once"));
}

}  // namespace dtrain::test
