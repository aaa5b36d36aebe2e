// Files that are named on the command line: files of JSON lines, and several files that form one data set.
#include <doctest/doctest.h>

#include "data/files/json_lines.h"
#include "data/support.h"

namespace dtrain::test {

namespace {

const TensorSpec kPair{"x", {2}};

}  // namespace

TEST_CASE("JSON lines are read as a table") {
  CHECK(is_json_lines(" \n{\"a\": 1}"));
  CHECK(is_json_lines("[1, 2]"));
  CHECK(is_json_lines("{ }"));
  CHECK(is_json_lines("{\"a\": 1,"));
  for (const char* text : {"a,b\n", "", "[verse 1]\n", "[1, 2\n", "{{Infobox", "{", "{%if%}"})
    CHECK_FALSE(is_json_lines(text));
  const TableText objects = table_of_json_lines(
      "{\"a\": 1.5, \"b\": \"x, \\\"y\\\"\"}\n\n{\"b\": null, \"c\": true, \"a\": -2}\n", "in.jsonl");
  CHECK(objects.has_header);
  CHECK(objects.text == "\"a\",\"b\",\"c\"\n1.5,\"x, \"\"y\"\"\",\n-2,,true\n");
  const TableText arrays = table_of_json_lines("[1, 2]\n[3, null]", "in.jsonl");
  CHECK_FALSE(arrays.has_header);
  CHECK(arrays.text == "1,2\n3,\n");
  // A row with a single missing value is written as "", because readers ignore blank lines at the end of a
  // file.
  CHECK(table_of_json_lines("{\"a\": 1}\n{\"a\": null}\n{}\n", "in.jsonl").text == "\"a\"\n1\n\"\"\n\"\"\n");
  CHECK(table_of_json_lines("[1]\n[null]\n", "in.jsonl").text == "1\n\"\"\n");
  const auto refusal = [](const std::string& text) {
    return error_of([&] { table_of_json_lines(text, "in.jsonl"); });
  };
  CHECK(contains(refusal("{}\n[]\n"), "in.jsonl:2: expected an object as in the first line, found an array"));
  CHECK(contains(refusal("{\"a\": 1}\n{\"a\": {}}\n"), "in.jsonl:2: expected a number or a string for 'a'"));
  CHECK(contains(refusal("[1\n"), "in.jsonl:1: the line cannot be read as JSON; expected ']'"));
  CHECK(contains(refusal("[1]\n[]\n"), "in.jsonl:2: expected an array of values, found an empty array"));
}

TEST_CASE("JSON lines with nested arrays are read as one array per key") {
  CHECK(has_nested_arrays("\n [[1], [2]]\n"));
  CHECK(has_nested_arrays("{\"a\": 1, \"b\": [2]}\n"));
  CHECK_FALSE(has_nested_arrays("[1, 2]\n[[3], [4]]\n"));
  CHECK_FALSE(has_nested_arrays("{\"a\": 1}\n"));
  const auto arrays = arrays_of_json_lines(
      "{\"a\": [[1, 2], [3, 4]], \"b\": 0.5}\n\n{\"b\": 2, \"a\": [[5, true], [7, 8]]}\n", "in.jsonl");
  REQUIRE(arrays.size() == 2);
  CHECK(arrays[0].name == "a");
  CHECK(arrays[0].shape == Shape{2, 2, 2});
  CHECK(arrays[0].type.name() == "int64");
  CHECK(reinterpret_cast<const int64_t*>(arrays[0].data.data())[5] == 1);
  CHECK(arrays[1].shape == Shape{2});
  CHECK(arrays[1].type.name() == "float64");
  CHECK(reinterpret_cast<const double*>(arrays[1].data.data())[1] == 2);
  const auto refusal = [](const std::string& text) {
    return error_of([&] { arrays_of_json_lines(text, "in.jsonl"); });
  };
  CHECK(contains(
      refusal("[[1, 2]]\n[[3]]\n"),
      "in.jsonl:2: expected an array of length 2, found an array of length 1; the value in the first line "
      "has the shape 1x2"));
  CHECK(contains(refusal("{\"a\": [1]}\n{\"a\": 1}\n"), "in.jsonl:2: expected an array of length 1 in 'a'"));
  CHECK(contains(
      refusal("{\"a\": [\"x\"]}\n"),
      "expected a number in 'a', found the string \"x\" (JSON lines with arrays must not contain strings)"));
  CHECK(contains(refusal("{\"a\": [1]}\n{}\n"), "in.jsonl:2: the key 'a' of the first line is missing"));
  CHECK(contains(refusal("{\"a\": [1]}\n{\"a\": [1], \"b\": 2}\n"),
                 "in.jsonl:2: the key 'b' is not in the first line"));
  CHECK(contains(refusal("[[1]]\n{\"a\": [1]}\n"),
                 "in.jsonl:2: expected an array as in the first line, found an object"));
}

TEST_CASE("inputs are found by name in JSON lines with arrays") {
  const TempDir folder;
  const DatasetSpec spec;
  const auto open = [&](const std::string& text, const std::vector<TensorSpec>& inputs) {
    write_file(folder / "in.jsonl", text);
    return open_inputs(given(folder / "in.jsonl"), spec, inputs, {});
  };
  CHECK(read_all(*open("[[1], [2]]\n[[3], [4.5]]\n", {{"x", {2, 1}}}), 0) ==
        std::vector<double>{1, 2, 3, 4.5});
  const auto two = open("{\"y\": [1], \"x\": [2, 3]}\n", {kPair, {"y", {1}, DType::int32}});
  CHECK(read_all(*two, 0) == std::vector<double>{2, 3});
  CHECK(read_all(*two, 1) == std::vector<double>{1});
  CHECK(contains(error_of([&] { open("{\"z\": [1]}\n", {kPair}); }),
                 "in.jsonl: expected 'x' in each line, found the unknown key 'z'"));
  CHECK(contains(error_of([&] {
                   open("{\"x\": [1, 2]}\n", {kPair, {"y", {1}}});
                 }),
                 "in.jsonl: each line must have the keys 'x', 'y', but the key 'y' is missing"));
  CHECK(contains(error_of([&] {
                   open("[[1, 2]]\n", {kPair, {"y", {1}}});
                 }),
                 "in.jsonl: each line must be an object with the keys 'x', 'y', but the lines are arrays"));
  CHECK(contains(error_of([&] { open("[[1, 2, 3]]\n", {kPair}); }), "in.jsonl"));
}

TEST_CASE("several files form one data set, in the order in which they are named") {
  const TempDir folder;
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
  CHECK(contains(error_of([&] { find_given_paths({folder / "c-*"}); }),
                 "expected files that match this pattern"));
  CHECK(contains(error_of([&] { open_given_files({"-", "-"}); }), "standard input is given more than once"));
}

}  // namespace dtrain::test
