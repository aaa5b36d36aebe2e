// Errors about columns and their values: all of them are reported together. An error about a column has the
// location that names the column.
#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/csv_run.h"

namespace dtrain::test {

namespace {

const std::string kHead = "header: true, ";

/// Returns the beginning of an error about `word` in the options of Run::train().
std::string at(const std::string& options, const std::string& word) {
  const std::string text = "train: {csv: {file: train.csv, " + options + "}}";
  REQUIRE(text.find(word) != std::string::npos);
  return fmt::format("dataset.yaml:1:{}: error: ", text.find(word) + 1);
}

size_t lines_in(const std::string& message) {
  return message.empty() ? 0 : 1 + static_cast<size_t>(std::count(message.begin(), message.end(), '\n'));
}

/// Checks that the message has one line for each word: the location of the word, and the column that is not
/// in the table.
void check_lines(const std::string& message, const std::string& options,
                 const std::vector<std::string>& words) {
  CAPTURE(message);
  CHECK(lines_in(message) == words.size());
  for (const std::string& word : words) {
    const size_t start = message.find(at(options, word));
    REQUIRE(start != std::string::npos);
    CHECK(contains(message.substr(start, message.find('\n', start) - start),
                   "train.csv: expected a column named '" + word + "'"));
  }
}

}  // namespace

TEST_CASE_FIXTURE(Run, "all columns that the table does not have are reported where they are named") {
  const std::string text = "name,a,b,day,species\nu,1,2,2026-01-31,0\n";
  const std::string options = kHead +
                              "target: specie, id: nam, drop: [note], categories: [color, a], weight: wt, "
                              "dates: {dai: [year]}, amounts: money, indicators: [gone], text: {txt: {}}";
  check_lines(error(text, options, {{"x", {2}}}), options,
              {"specie", "nam", "note", "color", "wt", "dai", "money", "gone", "txt"});
  const std::string named = kHead + "targets: {y: species, z: zed}, inputs: {x: [a, bee], v: cee}";
  check_lines(error(text, named, {{"x", {2}}, {"v", {1}}}, {{"y", {}}, {"z", {}}}), named,
              {"zed", "bee", "cee"});
  const std::string labels = kHead + "labels: [one, b, two], columns: [a, three]";
  check_lines(error(text, labels, {{"x", {2}}}, {{"", {3}}}), labels, {"one", "two", "three"});
  const std::string index = kHead + "target: 7, id: name, drop: [-6]";
  const std::string message = error(text, index, {{"x", {2}}});
  CHECK(lines_in(message) == 2);
  CHECK(contains(message, at(index, "7,") + (folder / "train.csv: expected a column index from -5 to 4")));
  CHECK(contains(message, at(index, "-6]")));
  std::string drop;
  for (int i = 0; i < 23; ++i) drop += fmt::format("{}gone{}", i ? ", " : "", i);
  const std::string many =
      error(text, kHead + "target: species, id: name, drop: [" + drop + "]", {{"x", {2}}});
  CAPTURE(many);
  CHECK(lines_in(many) == 21);
  CHECK(contains(many, "train.csv: 3 more missing columns"));
}

TEST_CASE_FIXTURE(Run, "columns of windows are reported with all other columns") {
  write_file(folder / "t.csv", "load,site,day\n1,a,1\n2,a,2\n3,a,3\n");
  const std::string yaml =
      "train: {csv: {file: t.csv, header: true, target: laod, drop: [x1]}, windows: {length: 1, by: sight, "
      "time: daj}}";
  spec = parse(folder, yaml);
  const std::string message = error_of([&] {
    open_split(spec, *spec.train, {{"x", {1, 1}}}, {{"", {1}}}, true);
  });
  CAPTURE(message);
  CHECK(lines_in(message) == 4);
  for (const std::string word : {"laod", "x1", "sight", "daj"})
    CHECK(contains(message, fmt::format("dataset.yaml:1:{}: error: {}: expected a column named '{}'",
                                        yaml.find(word) + 1, folder / "t.csv", word)));
}

TEST_CASE_FIXTURE(Run, "a missing header or a wrong delimiter is one error at the reader") {
  for (const std::string options : {"target: species, id: name", "header: true, target: species, id: name"}) {
    const std::string message = error("name;a;species\nu;1;0\n", options, {{"x", {1}}});
    CAPTURE(message);
    CHECK(lines_in(message) == 1);
    CHECK(contains(message, "dataset.yaml:1:8: error: "));
    CHECK(contains(message, options[0] == 'h' ? "; set 'delimiter' to" : "set 'header: true'"));
  }
}

TEST_CASE_FIXTURE(Run, "columns of other splits are reported together") {
  train("n,a,b,w,y\nu,1,2,1,0\n", kHead + "target: y, id: n, weight: w", {{"x", {2}}});
  const std::string options = kHead + "target: z, id: m, weight: v";
  const std::string message = error_of([&] { validate("a,c,d\n1,2,0\n", options); });
  CAPTURE(message);
  CHECK(lines_in(message) == 4);
  CHECK(contains(message,
                 "dataset.yaml:1:13: error: " + (folder / "other.csv") + ": expected a column named 'b'"));
  const std::string text = "validation: {csv: {file: other.csv, " + options + "}}";
  for (const std::string name : {"z", "m", "v"})
    CHECK(contains(message, fmt::format("dataset.yaml:1:{}: error: {}: expected a column named '{}'",
                                        text.find(": " + name) + 3, folder / "other.csv", name)));
  // Files that the configuration does not name have no location in the configuration.
  CHECK(
      error_of([&] { predict("c,d\n1,2\n"); }).starts_with(folder / "in.csv: expected columns named 'a', "));
}

TEST_CASE_FIXTURE(Run, "options that do not fit a column are reported where they name the column") {
  const std::vector<TensorSpec> x{{"x", {2}}};
  const std::string dates = kHead + "target: y, dates: {y: [days]}";
  CHECK(contains(error("d,y\n1,0\n", dates, x), at(dates, "y: [") + "dates: only input columns"));
  const std::string twice = kHead + "target: y, dates: {d: [days], e: [days]}, amounts: [e, d]";
  const std::string message = error("d,e,y\n1,1,0\n", twice, x);
  CHECK(lines_in(message) == 2);
  for (const std::string key : {"d: [", "e: ["})
    CHECK(contains(message, at(twice, key) + "the column '" + key[0] + "' is listed in more than one"));
  const std::string text = kHead + "target: y, text: {d: {}, e: {}}, inputs: {x: a}";
  const std::string unread = error("a,d,e,y\n1,u,v,0\n", text, {{"x", {1}}});
  CHECK(lines_in(unread) == 2);
  for (const std::string key : {"d: {", "e: {"})
    CHECK(contains(unread, at(text, key) + "text: no input of the model reads the column"));
  const std::string other = kHead + "target: y, inputs: {x: a, other: d}";
  CHECK(
      contains(error("a,d,y\n1,2,0\n", other, {{"x", {1}}}),
               at(other, "other") + "'inputs' contains 'other', but the model has no input with this name"));
}

TEST_CASE_FIXTURE(Run, "the first wrong value of each column is reported") {
  const std::string options = kHead + "target: y";
  const std::string several =
      error("a,b,c,d,e,y\n1,1,1,1,1,0\n1,,1,1,1,1\n1,2,red,1,1,0\n1,2,3,2026-01-31,$3,\n1,,blue,x,y,1\n",
            options, {{"x", {5}}});
  CAPTURE(several);
  CHECK(lines_in(several) == 5);
  for (const std::string value :
       {"3:3: expected a finite number in the column 'b', found ''; set 'fill'",
        "4:5: expected a finite number in the column 'c', found 'red'; list the column",
        "5:7: expected a finite number in the column 'd', found '2026-01-31'; a date",
        "5:18: expected a finite number in the column 'e', found '$3'; set 'amounts",
        "5:21: expected an integer (int32) in the column 'y', found ''; a target"})
    CHECK(contains(several, "dataset.yaml:1:8: error: " + (folder / "train.csv:") + value));

  std::string names, good, bad;
  for (int i = 0; i < 13; ++i) {
    names += fmt::format("c{},", i);
    good += "1,";
    bad += "q,";
  }
  const std::string many = error(names + "y\n" + good + "0\n" + bad + "1\n", options, {{"x", {13}}});
  CAPTURE(many);
  CHECK(lines_in(many) == 11);
  CHECK(contains(many, "train.csv:3:19: expected a finite number in the column 'c9'"));
  CHECK(many.ends_with("train.csv: values in 3 more columns cannot be read"));

  const std::string row = error("a,b,y\n1,x,0\n1,2\nz,1,0\n", options, {{"x", {2}}});
  CAPTURE(row);
  CHECK(lines_in(row) == 3);
  for (const std::string value : {"2:3: expected a finite", "3: expected 3 values", "4:1: expected a finite"})
    CHECK(contains(row, "train.csv:" + value));
  // A header that is read as a row is one error.
  CHECK(lines_in(error("a,b,y\n1,2,0\n", "target: -1", {{"x", {2}}})) == 1);

  train("a,b,y\n1,2,0\n3,4,1\n", options, {{"x", {2}}});
  const std::string given = error_of([&] { predict("a,b\n1,2\nu,3\n4,v\n"); });
  CHECK(lines_in(given) == 2);
  CHECK(given.starts_with(folder / "in.csv:3:1: expected a finite number in the column 'a', found 'u'"));
  CHECK(
      contains(given, "\n" + (folder / "in.csv:4:3: expected a finite number in the column 'b', found 'v'")));
}

TEST_CASE_FIXTURE(Run, "the first wrong value of each column is found in every block of a large file") {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 400000; ++i)
    text +=
        fmt::format("{},{},{}\n", i == 399000 || i == 399500 ? "u" : "1", i % 100000 == 7 ? "v" : "2", i % 2);
  const std::string message = error(text, kHead + "target: y", {{"x", {2}}});
  CAPTURE(message);
  CHECK(lines_in(message) == 2);
  CHECK(contains(message, "train.csv:9:3: expected a finite number in the column 'b', found 'v'"));
  CHECK(contains(message, "train.csv:399002:1: expected a finite number in the column 'a', found 'u'"));
}

TEST_CASE("columns of a table of images are reported together") {
  const TempDir folder;
  write_file(folder / "t.csv", "file,kind,w\nq.png,a,1\n");
  const std::string yaml = "train: {images: {csv: {file: t.csv, path: fil, target: kin, weight: ww}}}";
  const DatasetSpec spec = parse(folder, yaml);
  const std::string message = error_of([&] {
    open_split(spec, *spec.train, {{"image", {2, 2, 1}}}, {kLabel}, true);
  });
  CAPTURE(message);
  CHECK(lines_in(message) == 3);
  for (const std::string word : {"fil", "kin", "ww"})
    CHECK(contains(message, fmt::format("dataset.yaml:1:{}: error: {}: expected a column named '{}'",
                                        yaml.find(": " + word + (word == "fil" ? "," : "")) + 3,
                                        folder / "t.csv", word)));
}

TEST_CASE("all missing files and folders of a split are reported together") {
  const TempDir folder;
  const auto missing = [&](const std::string& reader, size_t count) {
    const DatasetSpec spec = parse(folder, "train: {" + reader + "}");
    const std::string message = error_of([&] {
      open_split(spec, *spec.train, {{"image", {2, 2, 1}}}, {{"", {2, 2, 1}}}, true);
    });
    CAPTURE(message);
    CHECK(lines_in(message) == count);
    Diagnostics diagnostics;
    check_files_exist(spec, diagnostics);
    for (const std::string name : {"one", "two"}) {
      CHECK(contains(message, "dataset.yaml:1:8: error: " + (folder / name)));
      CHECK(contains(messages(diagnostics), "dataset.yaml:1:8: error: " + (folder / name)));
    }
    CHECK(diagnostics.count() == count);
  };
  missing("images: {directory: one, target_images: {directory: two}}", 2);
  missing("npy: {input: one, target: two}", 2);
  missing("images: {directory: two, csv: {file: one, path: 0, target: 1}}", 2);
}

TEST_CASE("two folders of images are both checked") {
  const TempDir folder;
  for (const std::string name : {"one", "two"}) std::filesystem::create_directory(folder / name);
  const DatasetSpec spec =
      parse(folder, "train: {images: {directory: one, target_images: {directory: two}}}");
  const std::string message = error_of([&] {
    open_split(spec, *spec.train, {{"image", {2, 2, 1}}}, {{"", {2, 2, 1}}}, true);
  });
  CAPTURE(message);
  CHECK(lines_in(message) == 2);
  for (const std::string name : {"one", "two"})
    CHECK(contains(message, "dataset.yaml:1:8: error: " + (folder / name)));
}

}  // namespace dtrain::test
