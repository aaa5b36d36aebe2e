// A run stores facts about its training table in its checkpoints. These facts determine how other files are
// read.
#include <cmath>

#include <doctest/doctest.h>

#include "data/csv_run.h"
#include "data/readers/csv/destination.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
using Names = std::vector<std::string>;

const TextOptions kHeader{true, {}}, kNoHeader{false, {}};

}  // namespace

TEST_CASE_FIXTURE(Run, "the option `categories` works for files with and without a header") {
  const std::string unknown = "expected one of the training file's values";
  train("blue,1,0\nred,2,1\n", "target: -1, categories: [0]", {{"x", {3}}});
  CHECK(read_all(*predict("colour,size\nred,5\n", kHeader), 0) == Values{0, 1, 5});
  CHECK(contains(error_of([&] { predict("colour,size\nred,5\nyellow,6\n", kHeader); }), unknown));
  const std::string headed = "header: true, target: -1, categories: [0]";
  CHECK(read_all(*validate("c,s,y\nred,2,1\n", headed), 0) == Values{0, 1, 2});
  CHECK(contains(error_of([&] { validate("c,s,y\nyellow,2,1\n", headed); }), unknown));
  train("c,s,y\nblue,1,0\nred,2,1\n", headed, {{"x", {3}}});
  CHECK(read_all(*predict("red,5\n", kNoHeader), 0) == Values{0, 1, 5});
  CHECK(read_all(*validate("red,2,1\n", "target: -1, categories: [0]"), 0) == Values{0, 1, 2});
  // An index such as 0 refers to a column of the training file. In another file, the column with the same
  // name may have another position.
  CHECK(read_all(*validate("s,y,c\n2,1,red\n", headed), 0) == Values{0, 1, 2});
}

TEST_CASE_FIXTURE(Run, "ids and weights given by index are found by name in other files") {
  const auto data =
      train("n,a,w,y\nu,1,2,0\nv,3,4,1\n", "header: true, id: 0, weight: 2, target: -1", {{"x", {1}}});
  CHECK(data->sample_id(1) == "v");
  CHECK(read_all(*data, 2) == Values{2, 4});
  const auto named = predict("a,n\n5,z\n");
  CHECK(named->has_ids());
  CHECK(named->id_title() == "n");
  CHECK(named->sample_id(0) == "z");
  CHECK(!predict("a\n5\n")->has_ids());
  CHECK(!predict("u,5,1,0\n", kNoHeader)->sample_id(0).compare("u"));
  const auto other = validate("w,y,a,n\n6,1,7,q\n", "header: true, id: 0, weight: 2, target: -1");
  CHECK(other->sample_id(0) == "q");
  CHECK(read_all(*other, 0) == Values{7});
  CHECK(read_all(*other, 2) == Values{6});
  // If the facts in a checkpoint do not contain the name of the id column, the ids of other files are not
  // read.
  spec.facts.source.fields.id.clear();
  CHECK(!predict("a,n\n5,z\n")->has_ids());
}

TEST_CASE_FIXTURE(Run, "an id column may have the name 'row'") {
  const auto data = train("row,a,y\nu,1,0\n", "header: true, id: row, target: y", {{"x", {1}}});
  CHECK(data->has_ids());
  CHECK(data->sample_name(0) == "u");
}

TEST_CASE_FIXTURE(Run, "weights are used even if all targets are inputs") {
  const auto data = train("w,a,b\n2,1,3\n0.5,4,6\n", "header: true, weight: w, target: {input: x}",
                          {{"x", {2}}}, {{"", {2}}});
  REQUIRE(data->columns().size() == 3);
  CHECK(read_all(*data, 2) == Values{2, 0.5});
  CHECK(read_all(*data, 1) == Values{1, 3, 4, 6});
  CHECK(read_all(*validate("w,a,b\n7,1,3\n", "header: true, weight: w, target: {input: x}"), 2) == Values{7});
  CHECK(read_all(*predict("a,b\n1,3\n"), 0) == Values{1, 3});
}

TEST_CASE_FIXTURE(Run, "a target is a column of texts if any of its values is a text") {
  const auto classes = [&](const std::string& labels, const TensorSpec& target = kLabel) {
    std::string text = "a,y\n";
    for (const char c : labels) text += c == ' ' ? "\n" : std::string(text.ends_with('\n') ? "1," : "") + c;
    const auto data = train(text + "\n", "header: true, target: y", {{"x", {1}}}, {target});
    const auto& names = data->facts().source.class_names;
    return std::pair{names.empty() ? Names() : names.at("target"), read_all(*data, 1)};
  };
  CHECK(classes("none mild severe none") == std::pair{Names{"mild", "none", "severe"}, Values{1, 0, 2, 1}});
  CHECK(classes("1 2 2b 1") == std::pair{Names{"1", "2", "2b"}, Values{0, 1, 2, 0}});
  CHECK(classes("2b 1 2") == std::pair{Names{"1", "2", "2b"}, Values{2, 0, 1}});
  CHECK(classes("1 2 0") == std::pair{Names(), Values{1, 2, 0}});
  CHECK(classes("none mild none", kNumber) == std::pair{Names{"mild", "none"}, Values{1, 0, 1}});
  CHECK(classes("1.5 2 0", kNumber) == std::pair{Names(), Values{1.5, 2, 0}});
  // If a target has fractional values, it is numeric, and a text in it is an error.
  for (const std::string labels : {"unknown 1.5 2", "1.5 unknown 2", "none 1.5 unknown"})
    CHECK(
        contains(error_of([&] { classes(labels, kNumber); }), "expected a finite number in the column 'y'"));
  CHECK(contains(error_of([&] { classes("1.5 unknown 2", kNumber); }), "list the column in 'categories'"));
  // The training file determines whether the target of other files is a number or a class.
  classes("1 2 0");
  CHECK(contains(error_of([&] { validate("a,y\n1,2b\n", "header: true, target: y"); }),
                 "expected an integer (int32) in the column 'y', found '2b'"));
  classes("1 2 2b");
  CHECK(read_all(*validate("a,y\n1,2\n", "header: true, target: y"), 1) == Values{1});
}

TEST_CASE_FIXTURE(Run, "a text near the end of a large file makes the target a column of texts") {
  std::string text = "a,y\n";
  for (int i = 0; i < 300000; ++i) text += "1.25," + std::to_string(i % 3) + "\n";
  const auto data = train(text + "1,x\n", "header: true, target: y", {{"x", {1}}});
  CHECK(data->facts().source.class_names.at("target") == Names{"0", "1", "2", "x"});
  CHECK(read_rows(*data, {0, 299999, 300000}, 1) == Values{0, 2, 3});
}

TEST_CASE_FIXTURE(Run, "two targets may use the same class column") {
  const TensorSpec left{"left", {}, DType::int32}, right{"right", {}, DType::int32};
  train("a,y\n1,u\n2,v\n", "header: true, targets: {left: y, right: y}", {{"x", {1}}}, {left, right});
  const SourceFacts::Names expected{{"left", {"u", "v"}}, {"right", {"u", "v"}}};
  CHECK(spec.facts.source.class_names == expected);
  const auto other = validate("a,y\n1,v\n", "header: true, targets: {left: y, right: y}");
  CHECK(read_all(*other, 1) == Values{1});
  CHECK(read_all(*other, 2) == Values{1});
}

TEST_CASE_FIXTURE(Run, "predict finds reordered columns of a headerless file by position") {
  train("1,100,0\n2,200,1\n", "columns: [1, 0], target: -1", {{"x", {2}}});
  CHECK(read_all(*predict("3,300,0\n"), 0) == Values{300, 3});
  CHECK(read_all(*predict("3,300\n"), 0) == Values{300, 3});
  CHECK(contains(error_of([&] { predict("3\n"); }), "expected 2 values per line (only inputs) or 3"));
  // If a file has no targets, it contains only the input columns of the training file.
  train("9,1,100,0\n", "inputs: {x: [2], z: [1, 2]}, target: -1", {{"x", {1}}, {"z", {2}}});
  CHECK(read_all(*predict("3,300\n"), 0) == Values{300});
  CHECK(read_all(*predict("3,300\n"), 1) == Values{3, 300});
}

TEST_CASE_FIXTURE(Run, "missing integers are filled with exact integers") {
  const TensorSpec index{"i", {1}, DType::int32}, rest{"r", {1}};
  const std::string text = "i,r,y\n,1,0\n3,,1\n", names = "header: true, target: y, inputs: {i: i}, fill: ";
  const auto data = train(text, names + "16777217", {index, rest});
  CHECK(read_all(*data, 0) == Values{16777217, 3});
  for (const std::string fill : {"1e10", "0.5", "mean"}) {
    CAPTURE(fill);
    CHECK(contains(error(text, names + fill, {index, rest}),
                   "train.csv:2:1: expected an integer (int32) in the column 'i', found ''; the input 'i' is "
                   "int32, so 'fill' must be a whole number, not " +
                       fill));
    // If no value is missing in the integer input, missing values in other inputs are filled.
    const auto filled = train("i,r,y\n2,1,0\n3,,1\n", names + fill, {index, rest});
    CHECK(read_all(*filled, 0) == Values{2, 3});
    CHECK(read_all(*filled, 1) == Values{1, fill == "mean" ? 1 : static_cast<float>(std::stod(fill))});
  }
}

TEST_CASE_FIXTURE(Run, "predict reads an integer array after training with `fill`") {
  train("a,b,y\n1,2,0\n,4,1\n", "header: true, target: y, fill: mean", {{"x", {2}}});
  write_file(folder / "in.npy", npy_bytes("<i4", "(1, 2)", raw<int32_t>({5, 6})));
  CHECK(read_all(*open_inputs(given(folder / "in.npy"), spec, inputs, {}), 0) == Values{5, 6});
  write_file(folder / "in.npy", npy_bytes("<i4", "(1, 3)", raw<int32_t>({5, 6, 7})));
  CHECK(contains(error_of([&] { open_inputs(given(folder / "in.npy"), spec, inputs, {}); }),
                 "fill: each sample must have 2 elements, as in the training split, but found 3"));
}

TEST_CASE_FIXTURE(Run, "a missing value that 'fill' does not apply to is an error that names the value") {
  const std::vector<TensorSpec> x{{"x", {1}}};
  const std::string target = "; a target must have a value in every row";
  for (const std::string fill : {"", ", fill: median"}) {
    CHECK(contains(error("a,y\n1,0\n2,\n", "header: true, target: y" + fill, x),
                   "train.csv:3:3: expected an integer (int32) in the column 'y', found ''" + target));
    const std::string of_class = error("a,y\n1,u\n2,None\n", "header: true, target: y" + fill, x);
    CHECK(contains(of_class, "in the column 'y', found 'None'" + target));
    CHECK(
        contains(error("a,w,y\n1,,0\n", "header: true, target: y, weight: w" + fill, x),
                 "expected a weight of at least 0 in the column 'w', found ''; each row must have a value"));
  }
  CHECK(contains(error("c,y\nu,0\n,1\n", "header: true, target: y, categories: c", {{"c", {}, DType::int32}}),
                 "found ''; set 'unknown: other' to accept missing values"));
}

TEST_CASE_FIXTURE(Run, "predict fills missing values only with values from training") {
  train("a,y\n1,0\n2,1\n", "header: true, target: y", {{"x", {1}}});
  const auto with_fill = [&](const std::string& fill) {
    DatasetSpec other =
        parse(folder, "train: {csv: {file: train.csv, header: true, target: y, fill: " + fill + "}}");
    other.facts = spec.facts;
    write_file(folder / "in.csv", "a\n5\n\"\"\n");
    return open_inputs(given(folder / "in.csv"), other, inputs, {});
  };
  for (const std::string fill : {"mean", "median"})
    CHECK(contains(error_of([&] { with_fill(fill); }),
                   "fill: the run does not store the " + fill +
                       " of the training split, because it was trained without `fill: " + fill + "`"));
  CHECK(read_all(*with_fill("3"), 0) == Values{5, 3});
  CHECK(error_of([&] {
          predict("a\n\"\"\n", kHeader);
        }).ends_with("; set 'fill' to a number to replace missing values"));
  // The error about a text does not suggest options that are only for training.
  CHECK(error_of([&] {
          predict("a\nu\n", kHeader);
        }).ends_with("expected a finite number in the column 'a', found 'u'"));
}

TEST_CASE_FIXTURE(Run, "if training is resumed with other options, transforms are fitted again") {
  const std::string text = "a,y\n1,0\n2,0\n,1\n9,1\n", reader = "header: true, target: y, fill: ";
  const std::string standardize = "\ntransforms: [standardize]";
  train(text, reader + "mean", {{"x", {1}}});
  CHECK(read_all(*resume(reader + "mean"), 0) == Values{1, 2, 4, 9});
  CHECK(read_all(*resume(reader + "median"), 0) == Values{1, 2, 2, 9});
  // A resumed run uses the values that were fitted to the original training split, even if the training file
  // has changed since then.
  write_file(folder / "train.csv", "a,y\n1,0\n,1\n");
  CHECK(read_all(*resume(reader + "mean"), 0) == Values{1, 4});
  CHECK(contains(error_of([&] { validate(text, reader + "median"); }),
                 "was trained with another value of 'fill'"));
  // If the new configuration has another transform before a fitted transform, the values of the fitted
  // transform are computed again.
  const std::string numbers = "a,y\n1,0\n3,1\n", plain = "header: true, target: y";
  train(numbers, plain, {{"x", {1}}}, {kLabel}, standardize);
  CHECK(read_all(*resume(plain, standardize), 0) == Values{-1, 1});
  const auto scaled = resume(plain, "\ntransforms: [{rescale: {scale: 10}}, standardize]");
  CHECK(read_all(*scaled, 0) == Values{-1, 1});
  // Older checkpoints do not record the transforms that came before a fitted transform. Therefore its values
  // are not computed again.
  for (auto& [column, steps] : spec.facts.fitted)
    for (FittedStep& step : steps) step.chain.clear();
  CHECK(read_all(*resume(plain, "\ntransforms: [{rescale: {scale: 10}}, standardize]"), 0) == Values{8, 28});
}

TEST_CASE("a text that is longer than the column's width is not written") {
  std::vector<std::byte> memory(8, std::byte{1});
  const CsvDestination to{.kind = CsvDestination::Kind::text, .base = memory.data(), .stride = 4, .width = 4};
  CHECK(to.store("abcd", 0));
  CHECK(!to.store("abcde", 0));
  CHECK(memory[4] == std::byte{1});
}

TEST_CASE("'of: [target]' is ambiguous if an input has the name 'target'") {
  TempDir folder;
  const DatasetSpec spec = parse(folder,
                                 "train: {npy: {input: x, target: y}}\n"
                                 "transforms: [{standardize: {of: [target]}}]");
  const auto mistakes = [&](const std::string& input, const std::string& target) {
    Diagnostics diagnostics;
    check_transforms(spec.transforms, {{input, {1}}}, {{target, {1}}}, diagnostics);
    return error_of([&] { diagnostics.throw_if_errors(); });
  };
  CHECK(contains(mistakes("target", ""),
                 "dataset.yaml:2:34: error: standardize: `of` is ambiguous because both an input and"));
  CHECK(mistakes("x", "").empty());
  CHECK(mistakes("target", "price").empty());
}

}  // namespace dtrain::test
