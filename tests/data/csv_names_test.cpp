// Columns selected by name, if the file has names.
#include <doctest/doctest.h>

#include "data/support.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
const TensorSpec kInput{"x", {3}}, kLabel{"y", {}, DType::int32};

struct Fixture {
  Fixture() { write_file(folder / "train.csv", "a,b,c,label\n1,2,3,0\n4,5,6,1\n"); }
  /// Trains with train.csv, and opens `text` as the file of the validation split.
  std::shared_ptr<const Dataset> open(const std::string& text, const std::string& target = "-1",
                                      const std::string& more = "") {
    write_file(folder / "other.csv", text);
    const auto reader = [](const std::string& file, const std::string& column) {
      return "{csv: {file: " + file + ", header: true, target: " + column + "}}";
    };
    DatasetSpec spec = parse(folder, "train: " + reader("train.csv", "-1") +
                                         "\nvalidation: " + reader("other.csv", target) + more);
    spec.facts = open_split(spec, *spec.train, {kInput}, {kLabel})->facts();
    CHECK(spec.facts.source.fields.inputs == std::vector<std::string>{"a", "b", "c"});
    CHECK(spec.facts.source.fields.targets == std::vector<std::string>{"label"});
    return open_split(spec, *spec.validation, {kInput}, {kLabel});
  }
  std::string error(const std::string& text, const std::string& target = "-1") {
    return error_of([&] { open(text, target); });
  }
  TempDir folder;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a split's columns are found by the training file's names") {
  for (const std::string cache : {"", "\ncache: memory", "\ncache: {file: kept}"}) {
    for (const std::string text : {"a,b,c,label\n7,8,9,1\n", "label,c,extra,a,b\n1,9,0,7,8\n",
                                   "note,c,b,a,label\ntext of no use,9,8,7,1\n"}) {
      CAPTURE(text);
      const auto data = open(text, "-1", cache);
      CHECK(read_all(*data, 0) == Values{7, 8, 9});
      CHECK(read_all(*data, 1) == Values{1});
    }
  }
  // A target given by name selects that column.
  CHECK(read_all(*open("kind,c,b,a\n1,9,8,7\n", "kind"), 1) == Values{1});
}

TEST_CASE_FIXTURE(Fixture, "missing and duplicate column names are errors") {
  CHECK(contains(error("a,b,d,label\n7,8,9,1\n"),
                 "expected a column named 'c', found the columns 'a', 'b', 'd', 'label'"));
  const std::string several = error("a,X,Y,label\n7,8,9,1\n");
  CHECK(contains(several, "expected columns named 'b'"));
  CHECK(contains(several, ", 'c'"));
  CHECK(contains(several, ", found the columns 'a', 'X', 'Y', 'label'"));
  CHECK(contains(error("a,b,c,kind\n7,8,9,1\n"), "expected a column named 'label'"));
  CHECK(contains(error("a,b,c,a\n7,8,9,1\n"), "other.csv:1:7: expected a different name for each column"));
  CHECK(contains(error("a,b,c,a\n7,8,9,1\n"), "dataset.yaml:2:13: error: "));
  write_file(folder / "train.csv", "a,b,a,label\n1,2,3,0\n");
  const DatasetSpec spec = parse(folder, "train: {csv: {file: train.csv, header: true, target: -1}}");
  CHECK(contains(error_of([&] { open_split(spec, *spec.train, {kInput}, {kLabel}); }), "found 'a' again"));
  CHECK_FALSE(
      contains(error_of([&] { open_split(spec, *spec.train, {kInput}, {kLabel}); }), "header: false"));
  write_file(folder / "train.csv", "0,1.5,0,1\n1,2,3,0\n");
  CHECK(contains(error_of([&] { open_split(spec, *spec.train, {kInput}, {kLabel}); }),
                 "found '0' again; if the first line has data instead of names, set 'header: false'"));
}

TEST_CASE_FIXTURE(Fixture, "predict reads inputs with the options of the run's reader") {
  const auto predict = [&](const std::string& reader, const std::string& text,
                           const TextOptions& options = {}, const FieldNames& fields = {}) {
    write_file(folder / "in.csv", text);
    DatasetSpec spec = parse(folder, "train: " + reader);
    spec.facts.source.fields = fields;
    return read_all(*open_inputs(given(folder / "in.csv"), spec, {kInput}, options), 0);
  };
  const std::string plain = "{csv: {file: t, target: -1}}",
                    named = "{csv: {file: t, header: true, target: -1}}",
                    semicolon = "{csv: {file: t, header: true, target: -1, delimiter: ';'}}",
                    other = "{synthetic: {samples: 3}}";
  const FieldNames fields{{"a", "b", "c"}, {"label"}, {}, 0};
  const auto error = [&](const std::string& reader, const std::string& text, const TextOptions& options = {},
                         const FieldNames& known = {}) {
    return error_of([&] { predict(reader, text, options, known); });
  };
  CHECK(predict(plain, "1,2,3\n4,5,6\n") == Values{1, 2, 3, 4, 5, 6});
  CHECK(contains(error(plain, "1,nan,3\n4,5,6\n"), "in.csv:1:3: expected a finite number, found 'nan'"));
  CHECK(contains(error(plain, "1,,3\n4,5,6\n"), "in.csv:1:3"));
  CHECK(contains(error(plain, "a,b,c\n4,5,6\n"),
                 "in.csv:1:1: expected a finite number, found 'a'; if the first"));
  CHECK(predict(plain, "a,b,c\n4,5,6\n", {true, {}}) == Values{4, 5, 6});
  CHECK(predict(named, "0,1,2\n4,5,6\n") == Values{4, 5, 6});
  CHECK(predict(named, "4,5,6\n", {false, {}}, fields) == Values{4, 5, 6});
  CHECK(predict(semicolon, "c;a;id;b\n6;4;x;5\n", {}, fields) == Values{4, 5, 6});
  CHECK(predict(semicolon, "4,5,6\n", {false, ','}) == Values{4, 5, 6});
  CHECK(contains(error(named, "a,b\n4,5\n", {}, fields), "expected a column named 'c'"));
  // If a run has no text columns, a first line with names is a header. A first line with missing values or
  // numbers is not a header.
  CHECK(predict(other, "a,b,c\n4,5,6\n") == Values{4, 5, 6});
  CHECK(predict(other, "4,5,6\n") == Values{4, 5, 6});
  for (const std::string first : {"1,nan,3", "1,,3", "1,NA,3", "nan,nan,nan", ",,", "1,two,3"})
    CHECK(contains(error(other, first + "\n4,5,6\n"), "in.csv:1:"));
  write_file(folder / "in.npy", npy_bytes("<f4", "(1, 3)", raw<float>({1, 2, 3})));
  const DatasetSpec spec = parse(folder, "train: " + plain);
  CHECK(contains(error_of([&] {
                   open_inputs(given(folder / "in.npy"), spec, {kInput}, {true, {}});
                 }),
                 "this file is not delimited text"));
}

}  // namespace dtrain::test
