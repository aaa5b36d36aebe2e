// Samples with several labels. The targets have one column of 0 and 1 for each label.
#include <doctest/doctest.h>

#include "data/csv_run.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
const TensorSpec kNumbers{"x", {1}};
const std::vector<TensorSpec> kThree{{"", {3}, DType::float32}}, kTwo{{"", {2}, DType::float32}};
const std::string kTags = "header: true, labels: {column: tags}";

}  // namespace

TEST_CASE("labels of a text are split at the separator, and sorted") {
  Run run;
  const auto data =
      run.train("x,tags\n1,red;round\n2,\n3, round ; tall;\n4,red\n", kTags, {kNumbers}, kThree);
  CHECK(read_all(*data, 0) == Values{1, 2, 3, 4});
  CHECK(read_all(*data, 1) == Values{1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"red", "round", "tall"});
  // Other files are read with the labels that the training file has.
  CHECK(read_all(*run.validate("tags,x\ntall,7\n", kTags), 1) == Values{0, 0, 1});
  const std::string error = error_of([&] { run.validate("x,tags\n7,red\n8,tall;big\n", kTags); });
  CHECK(contains(error, "other.csv:3:3: "));
  CHECK(contains(error, "expected labels of the training file, separated by ';'"));
  CHECK(read_all(*run.predict("x,tags\n5,\n"), 0) == Values{5});
}

TEST_CASE("labels may have another separator, and a file may have no labels") {
  Run run;
  const std::string bars = "header: true, labels: {column: tags, separator: '|'}";
  const auto data = run.train("x,tags\n1,a;b|c\n2,c\n", bars, {kNumbers}, kTwo);
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"a;b", "c"});
  CHECK(read_all(*data, 1) == Values{1, 1, 0, 1});
  CHECK(contains(run.error("x,tags\n1,\n2,\n", kTags, {kNumbers}, kTwo),
                 "expected labels separated by ';', found none"));
}

TEST_CASE("columns of 0 and 1 are labels, named after the columns") {
  Run run;
  const auto data =
      run.train("x,red,round\n1,0,1\n2,1,1\n", "header: true, labels: [red, round]", {kNumbers}, kTwo);
  CHECK(read_all(*data, 0) == Values{1, 2});  // the label columns are not part of the input
  CHECK(read_all(*data, 1) == Values{0, 1, 1, 1});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"red", "round"});
  CHECK(read_all(*run.validate("round,red,x\n1,0,3\n", "header: true, labels: [red, round]"), 1) ==
        Values{0, 1});
}

TEST_CASE("wrong options of labels are reported") {
  Run run;
  const auto error = [&](const std::string& options, const std::vector<TensorSpec>& targets = kTwo) {
    return run.error("x,tags\n1,a;b\n", options, {kNumbers}, targets);
  };
  CHECK(contains(error("header: true, target: tags, labels: {column: tags}"),
                 "give either 'labels' (for several labels per sample) or a target, not both"));
  CHECK(contains(error("header: true, labels: {}"),
                 "labels: give either 'columns' (columns of 0 and 1) or 'column'"));
  CHECK(contains(error("header: true, labels: {column: tags, separator: ab}"), "expected one character"));
  CHECK(contains(error("header: true, labels: {column: tags}", {kLabel}), "the loss needs a class number"));
  CHECK(contains(error("header: true, labels: {column: kinds}"), "expected a column named 'kinds'"));
  CHECK(contains(error("header: true, labels: {column: tags}", kThree),
                 "needs 3 float32 per sample, but the data have 2"));
}

TEST_CASE("a table of images may have labels") {
  const TempDir folder;
  for (const std::string name : {"a.png", "b.png"}) {
    const Bytes bytes = png_of(gradient(4, 5, 3));
    write_file(folder / name, {bytes.begin(), bytes.end()});
  }
  write_file(folder / "labels.csv", "file,tags\na.png,cat;dog\nb.png,dog\n");
  const DatasetSpec spec =
      parse(folder, "train: {images: {csv: {file: labels.csv, path: file, labels: {column: tags}}}}");
  const auto data = open_split(spec, *spec.train, {{"image", {4, 5, 3}, DType::float32}}, kTwo);
  CHECK(read_all(*data, 1) == Values{1, 1, 0, 1});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"cat", "dog"});
}

}  // namespace dtrain::test
