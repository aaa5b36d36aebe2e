// Typical tables: column names, missing values, categories, ids, and transforms fitted on the training split.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/columns/fit.h"
#include "data/readers/csv/decimal.h"
#include "data/splits/draw_split.h"
#include "data/support.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
using Names = std::vector<std::string>;
const TensorSpec kLabel{"", {}, DType::int32};

struct Tables {
  TempDir folder;
  DatasetSpec spec;

  /// Opens a.csv as the training split of a model with these inputs. Keeps the facts about a.csv for other
  /// files.
  std::shared_ptr<const Dataset> train(const std::string& text, const std::string& options,
                                       const std::vector<TensorSpec>& inputs,
                                       const std::vector<TensorSpec>& targets = {kLabel},
                                       const std::string& more = "") {
    write_file(folder / "a.csv", text);
    spec = parse(folder, "train: {csv: {file: a.csv, header: true, " + options + "}}" + more);
    auto data = open_split(spec, *spec.train, inputs, targets);
    spec.facts = DataFacts::from_json(Json::parse(data->facts().to_json().dump()));
    return data;
  }
  std::string error(const std::string& text, const std::string& options,
                    const std::vector<TensorSpec>& inputs,
                    const std::vector<TensorSpec>& targets = {kLabel}) {
    return error_of([&] { train(text, options, inputs, targets); });
  }
  std::shared_ptr<const Dataset> predict(const std::string& text, const std::vector<TensorSpec>& inputs,
                                         const TextOptions& options = {}) {
    write_file(folder / "in.csv", text);
    return open_inputs(given(folder / "in.csv"), spec, inputs, options);
  }
};

constexpr const char* kFlowers =
    "id,size,colour,note,species\n"
    "f1,1,red,x,rose\n"
    "f2,2,blue,\"a, b\",iris\n"
    "f3,4,red,\"two\nlines \"\"quoted\"\"\",rose\n"
    "\"f,4\",5,,y,tulip\n";

}  // namespace

TEST_CASE_FIXTURE(Tables, "class names, categories, ids and dropped columns are read") {
  const std::string options = "target: species, id: id, drop: [note], categories: [colour]";
  const auto data = train(kFlowers, options, {{"x", {3}}});
  CHECK(read_all(*data, 0) == Values{1, 0, 1, 2, 1, 0, 4, 0, 1, 5, 0, 0});
  CHECK(read_all(*data, 1) == Values{1, 0, 1, 2});
  CHECK(data->facts().source.class_names == SourceFacts::Names{{"target", {"iris", "rose", "tulip"}}});
  CHECK(data->facts().source.categories == SourceFacts::Names{{"colour", {"blue", "red"}}});
  CHECK(data->id_title() == "id");
  CHECK(data->sample_name(3) == "f,4");
  // Other tables may have additional columns, another order of columns, and no target.
  const auto other = predict("colour,more,size,id\nblue,0,7,z\n", {{"x", {3}}});
  CHECK(read_all(*other, 0) == Values{7, 1, 0});
  CHECK(other->sample_id(0) == "z");
  CHECK(read_all(*predict("species,colour,size\nno matter,red,3\n", {{"x", {3}}}), 0) == Values{3, 0, 1});
  CHECK(predict("colour,size\nred,3\n", {{"x", {3}}})->sample_name(0) == "row 0");
  CHECK(contains(
      error_of([&] {
        predict("colour,size\ngreen,3\n", {{"x", {3}}});
      }),
      "in.csv:2:1: expected one of the training file's values in the column 'colour' ('blue', 'red'), "
      "found 'green'; set 'unknown: other' to accept missing values"));
  CHECK(contains(error_of([&] {
                   predict("colour,length\nred,3\n", {{"x", {3}}});
                 }),
                 "a column named 'size'"));
}

TEST_CASE_FIXTURE(Tables, "names, weights and facts are the same with every cache") {
  for (const std::string cache : {"none", "memory", "{file: kept}", "{file: kept}"}) {
    CAPTURE(cache);
    const auto data = train("n,w,x,c\na,2,1,u\nb,0.5,3,v\n", "target: c, id: n, weight: w", {{"x", {1}}},
                            {kLabel}, "\ncache: " + cache);
    CHECK(read_all(*data, 0) == Values{1, 3});
    CHECK(read_all(*data, 1) == Values{0, 1});
    CHECK(read_all(*data, 2) == Values{2, 0.5});
    CHECK(data->sample_id(1) == "b");
    CHECK(data->facts().source.class_names.at("target") == Names{"u", "v"});
    // If the training file is opened again with the facts about it, it has the same columns.
    CHECK(read_all(*open_split(spec, *spec.train, {{"x", {1}}}, {kLabel}), 1) == Values{0, 1});
  }
  CHECK(contains(error("w,x,c\n-1,1,0\n", "target: c, weight: w", {{"x", {1}}}),
                 "a.csv:2:1: expected a weight of at least 0 in the column 'w', found '-1'"));
}

TEST_CASE_FIXTURE(Tables, "categories are converted to indices, and unknown values are errors or `other`") {
  const std::vector<TensorSpec> inputs{{"colour", {}, DType::int32}, {"rest", {2}}};
  const std::string text = "a,colour,b,y\n1,red,2,0.5\n3,blue,4,1.5\n";
  const TensorSpec number{"", {1}};
  train(text, "target: y, inputs: {colour: colour}, categories: colour", inputs, {number});
  CHECK(read_all(*predict("b,a,colour\n2,1,blue\n", inputs), 0) == Values{0});
  CHECK(read_all(*predict("b,a,colour\n2,1,blue\n", inputs), 1) == Values{1, 2});
  CHECK_THROWS_AS(predict("b,a,colour\n2,1,green\n", inputs), UserError);
  const auto data = train(text,
                          "target: y, inputs: {rest: [b, a], colour: [colour]}, categories: [colour], "
                          "unknown: other",
                          inputs, {number});
  CHECK(read_all(*data, 0) == Values{2, 1});
  CHECK(read_all(*data, 1) == Values{2, 1, 4, 3});
  CHECK(read_all(*predict("b,a,colour\n2,1,green\n", inputs), 0) == Values{0});
  // If a category is an input feature, an unknown value gives 0 for all categories.
  train(text, "target: y, categories: [colour], unknown: other", {{"x", {4}}}, {number});
  CHECK(read_all(*predict("b,a,colour\n2,1,green\n", {{"x", {4}}}), 0) == Values{1, 0, 0, 2});
  CHECK(contains(error(text, "target: y, inputs: {hue: colour}, categories: colour", inputs, {number}),
                 "'hue'"));
}

TEST_CASE_FIXTURE(Tables,
                  "missing values are filled with a value from the training split or with a given number") {
  const std::string text = "a,b,y\n1,2,0\n,4,1\nNA,100,0\n4,?,1\n";
  CHECK(contains(error(text, "target: y", {{"x", {2}}}),
                 "a.csv:3:1: expected a finite number in the column 'a', found ''; set 'fill' to mean, "
                 "median or a number"));
  CHECK(read_all(*train(text, "target: y, fill: mean", {{"x", {2}}}), 0) ==
        Values{1, 2, 2.5, 4, 2.5, 100, 4, static_cast<float>(106.0 / 3)});
  CHECK(read_all(*predict("b,a\n,\n", {{"x", {2}}}), 0) == Values{2.5, static_cast<float>(106.0 / 3)});
  CHECK(read_all(*train(text, "target: y, fill: median", {{"x", {2}}}), 0) ==
        Values{1, 2, 2.5, 4, 2.5, 100, 4, 4});
  CHECK(read_all(*train(text, "target: y, fill: -1", {{"x", {2}}}), 0) ==
        Values{1, 2, -1, 4, -1, 100, 4, -1});
  // A missing target is an error regardless of `fill`.
  CHECK(contains(error("a,y\n1,0\n2,\n", "target: y, fill: 0", {{"x", {1}}}), "a.csv:3:3"));
  CHECK(contains(error("a,b,y\n,1,0\n,2,1\n", "target: y, fill: mean", {{"x", {2}}}),
                 "has no value in the whole training split, so its mean cannot be computed"));
  // The mean is computed only over the rows of the split.
  write_file(folder / "a.csv", text);
  spec = parse(folder, "train: {csv: {file: a.csv, header: true, target: y, fill: mean}, rows: [0, 3]}");
  CHECK(read_all(*open_split(spec, *spec.train, {{"x", {2}}}, {kLabel}), 0) == Values{1, 2, 1, 4, 1, 100});
}

TEST_CASE_FIXTURE(Tables, "an unexpected value is an error with line and column") {
  const std::vector<TensorSpec> pair{{"x", {2}}};
  CHECK(contains(error("a,b,y\n1,2,0\n1,red,0\n", "target: y", pair),
                 "a.csv:3:3: expected a finite number in the column 'b', found 'red'; list the column in"));
  CHECK(contains(error("a,b,y\n1,2,0\n1,2026-11-22,0\n", "target: y", pair), "; a date is not a number"));
  CHECK(contains(error("a,b,y\n1,2,0\n1,2,red\n", "target: y", pair, {{"", {1}}}),
                 "a.csv:3:5: expected a finite number in the column 'y', found 'red'; list the column in"));
  CHECK(contains(error("a,b,y\n1,\"2\n3,0\n", "target: y", pair),
                 "a.csv:2:3: expected a closing quote for the value"));
  CHECK(contains(error("a,b,y\n1,\"2\"3,0\n", "target: y", pair), "a.csv:2:6: expected ',' or the end"));
  CHECK(contains(error("a,b,y\n1,2,0\n1,\"a\nb\",0\n", "target: y", pair), "a.csv:3:3: "));
  CHECK(contains(error("a,b,y\n1,2,0,3,4\n", "target: y", pair), "a.csv:2: expected 3 values"));
  CHECK(contains(error("a,b,y\n1,2,0\n", "target: y, drop: [c]", pair), "a column named 'c'"));
  CHECK(contains(error("a,b,y\n1,2,0\n", "target: y, columns: [a], drop: [b]", pair), "'columns'"));
  CHECK(contains(error("a,b,y\n1,2,0\n", "target: y, fill: some", pair), "mean, median or a number"));
  // Numbers may be category names.
  CHECK(read_all(*train("a,b,y\n1,2,10\n1,2,9\n", "target: y, categories: [y], columns: [b, a]", pair), 1) ==
        Values{1, 0});
  CHECK(spec.facts.source.class_names.at("target") == Names{"9", "10"});
}

TEST_CASE("predict reads tables without a header with or without their target") {
  Tables t;
  write_file(t.folder / "a.csv", "cat,1,u,2\ndog,3,v,4\n");
  t.spec = parse(t.folder, "train: {csv: {file: a.csv, target: 0, categories: [2]}}");
  const std::vector<TensorSpec> inputs{{"x", {4}}};
  const auto data = open_split(t.spec, *t.spec.train, inputs, {kLabel});
  t.spec.facts = data->facts();
  CHECK(read_all(*data, 0) == Values{1, 1, 0, 2, 3, 0, 1, 4});
  CHECK(read_all(*t.predict("5,v,6\n", inputs), 0) == Values{5, 0, 1, 6});
  CHECK(read_all(*t.predict("dog,5,v,6\n", inputs), 0) == Values{5, 0, 1, 6});
  CHECK(contains(error_of([&] { t.predict("5,v\n", inputs); }),
                 "expected 3 values per line (only inputs) or 4"));
}

TEST_CASE("blocks of rows may begin at quotes, line ends and blank lines") {
  TempDir folder;
  for (const bool quotes : {false, true}) {
    std::string text = "id,a,b,y\r\n";
    Values expected;
    Names ids;
    for (int i = 0; i < 60000; ++i) {
      const double a = i / 8.0, b = -i;
      ids.push_back(quotes && i % 7 == 0 ? fmt::format("n,\n{}", i) : fmt::format("n{}", i));
      const bool quoted = ids.back()[1] == ',';
      text +=
          fmt::format("{}{}{},{},{:e},{}{}", quoted ? "\"" : "", ids.back(), quoted ? "\"" : "", a, b, i % 3,
                      i % 5 == 0    ? "\r\n"
                      : i % 11 == 0 ? "\n \n"
                                    : "\n");
      expected.push_back(a);
      expected.push_back(b);
    }
    for (const bool packed : {false, true}) {
      packed ? write_gzip(folder / "a.csv", text) : write_file(folder / "a.csv", text);
      const DatasetSpec spec = parse(folder, "train: {csv: {file: a.csv, header: true, target: y, id: id}}");
      const auto data = open_split(spec, *spec.train, {{"x", {2}}}, {kLabel});
      CHECK(data->size() == 60000);
      CHECK(read_all(*data, 0) == expected);
      CHECK(data->sample_id(59999) == ids.back());
      CHECK(data->sample_id(14) == ids[14]);
    }
    // Reports the first of two mistakes, regardless of thread timing.
    const size_t late = text.size() - 2000;
    std::string wrong = text;
    wrong.replace(wrong.find("\nn30001,") + 8, 1, "x");
    wrong.replace(wrong.find("\nn", late) + 1, 1, "x,x,x");
    write_file(folder / "a.csv", wrong);
    const DatasetSpec spec = parse(folder, "train: {csv: {file: a.csv, header: true, target: y, id: id}}");
    CHECK(contains(error_of([&] { open_split(spec, *spec.train, {{"x", {2}}}, {kLabel}); }), "found 'x"));
  }
}

TEST_CASE("a text longer than a block may contain lines that look like rows") {
  TempDir folder;
  std::string text = "x,note,y\n", lines;
  // The quoted text contains many lines that look like rows. A thread that starts to read inside the text
  // therefore takes each line for a row, and the closing quotation mark for an opening one.
  while (lines.size() < (size_t{1} << 19)) lines += "1,\"\"2\"\",3\n";
  Values expected;
  for (const int copies : {1, 7, 0, 2, 3}) {
    text += fmt::format("{},\"", expected.size());
    for (int i = 0; i < copies; ++i) text += lines;
    text += ",\",1\n";
    expected.push_back(static_cast<double>(expected.size()));
  }
  for (int i = 0; i < 400000; ++i) {
    text += fmt::format("{},a,2\n", expected.size());
    expected.push_back(static_cast<double>(expected.size()));
  }
  write_file(folder / "a.csv", text);
  const DatasetSpec spec =
      parse(folder, "train: {csv: {file: a.csv, header: true, target: y, drop: [note]}}");
  const auto data = open_split(spec, *spec.train, {{"x", {1}}}, {kLabel});
  CHECK(read_all(*data, 0) == expected);
}

TEST_CASE("moments, means and medians are computed from a split's values") {
  constexpr int64_t kRows = 300001;
  FitSamples samples{{"x", {3}}, kRows, [](int64_t first, int64_t count, double* dst) {
                       for (int64_t i = first; i < first + count; ++i) {
                         *dst++ = 0.1;
                         *dst++ = static_cast<double>(2000 + i % 5);
                         *dst++ = i % 2 == 0 ? std::nan("") : static_cast<double>(i);
                       }
                     }};
  const Moments moments = moments_of(samples);
  CHECK(moments.deviation[0] == 0);
  CHECK(moments.mean[0] == 0.1);
  CHECK(moments.mean[1] == doctest::Approx(2002).epsilon(1e-8));
  CHECK(moments.deviation[1] == doctest::Approx(std::sqrt(2.0)).epsilon(1e-5));
  CHECK(means_of_elements(samples)[2] == doctest::Approx(150000));
  CHECK(medians_of_elements(samples, {2})[2] == doctest::Approx(150000));
  const Moments again = moments_of(samples);
  CHECK(again.mean == moments.mean);
  CHECK(again.deviation == moments.deviation);
}

TEST_CASE_FIXTURE(Tables, "standardize uses the training split for inputs and targets") {
  const std::string more =
      ", rows: [0, 4]}\nvalidation: {csv: {file: a.csv, header: true, target: y}, rows: [4, 5]}\n"
      "transforms: [standardize, {standardize: {of: [target]}}]";
  write_file(folder / "a.csv", "a,b,y\n1,7,10\n3,7,10\n1,7,30\n3,7,30\n5,8,50\n");
  spec = parse(folder, "train: {csv: {file: a.csv, header: true, target: y}" + more);
  const std::vector<TensorSpec> inputs{{"x", {2}}}, targets{{"", {1}}};
  const auto data = open_split(spec, *spec.train, inputs, targets);
  CHECK(read_all(*data, 0) == Values{-1, 0, 1, 0, -1, 0, 1, 0});
  CHECK(read_all(*data, 1) == Values{-1, -1, 1, 1});
  spec.facts = DataFacts::from_json(Json::parse(data->facts().to_json().dump()));
  const auto validation = open_split(spec, *spec.validation, inputs, targets);
  CHECK(read_all(*validation, 0) == Values{3, 1});
  CHECK(read_all(*validation, 1) == Values{3});
  CHECK(validation->facts() == spec.facts);
  CHECK(read_all(*predict("b,a\n7,5\n", inputs), 0) == Values{3, 0});
  spec.facts.fitted.clear();
  CHECK(contains(error_of([&] { predict("b,a\n7,5\n", inputs); }), "needs statistics of the training split"));
}

TEST_CASE_FIXTURE(
    Tables, "a number that is too small for a double is 0, and a number that is too large is an error") {
  const std::vector<TensorSpec> inputs{{"x", {2}}};
  CHECK(read_all(*train("a,b,y\n1e-400,-1e-400,1\n", "target: y", inputs), 0) == Values{0, 0});
  CHECK(contains(error("a,b,y\n1,1e400,1\n", "target: y", inputs), "a.csv:2:3: expected a finite number"));
}

TEST_CASE_FIXTURE(Tables, "large numbers keep more digits than float32 has") {
  // Seconds since 1970 and Julian days need more digits than float32 has. They are stored as double, and
  // their missing values are also filled in double. Small numbers are stored as float32.
  std::string text = "t,day,small,y\n";
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},{:.3f},{},{}\n", i == 0 || i == 99 ? "" : std::to_string(1700000000 + i),
                        2459000 + 0.125 * i, i % 10 * 0.1, 1700000000 + i);
  write_file(folder / "a.csv", text);
  spec = parse(folder,
               "train: {csv: {file: a.csv, header: true, target: y, fill: mean}}\n"
               "transforms: [{rescale: {scale: 0.001}}, standardize, {standardize: {of: [target]}}]");
  const std::vector<TensorSpec> inputs{{"x", {3}}}, targets{{"", {1}}};
  const auto data = open_split(spec, *spec.train, inputs, targets);
  // Standard deviation of 100 consecutive numbers.
  const double deviation = std::sqrt((100.0 * 100 - 1) / 12);
  const double last = 48.5 / deviation;
  const std::vector<double> x = read_all(*data, 0), y = read_all(*data, 1);
  // A missing value is filled with the mean, which is 0 after standardization.
  CHECK(x[0] == doctest::Approx(0));
  for (size_t i = 0; i < 100; ++i) {
    const double expected = (static_cast<double>(i) - 49.5) / deviation;
    if (i > 0 && i < 99) CHECK(x[3 * i] / x[3 * 98] == doctest::Approx(expected / last).epsilon(1e-6));
    CHECK(x[3 * i + 1] == doctest::Approx(expected).epsilon(1e-6));
    CHECK(y[i] == doctest::Approx(expected).epsilon(1e-6));
  }
  CHECK_FALSE(data->stored_form(0));
  // The columns of b.csv do not need double, so they are stored as float32. The columns of a.csv need double,
  // and a cache file keeps their exact values.
  write_file(folder / "b.csv", "a,y\n0.1,1\n0.2,2\n16777216,3\n");
  const DatasetSpec small = parse(folder, "train: {csv: {file: b.csv, header: true, target: y}}");
  REQUIRE(open_split(small, *small.train, {{"x", {1}}}, targets)->stored_form(0));
  const std::string cached =
      "train: {csv: {file: a.csv, header: true, target: y, fill: 0}}\n"
      "cache: {file: " +
      folder / "cache" + "}";
  for (int i = 0; i < 2; ++i) {
    const DatasetSpec again = parse(folder, cached);
    CHECK(read_all(*open_split(again, *again.train, inputs, targets), 0)[1] == 2459000);
  }
}

TEST_CASE("a float32 column with a large offset is centered in double precision") {
  ColumnPlan plan({"x", {2}});
  plan.affine({0.5, 0.5}, {0, -8388608.25});
  CHECK_FALSE(plan.map());
  REQUIRE(plan.exact_map());
  CHECK(plan.exact_map()->offset[1] == -8388608.25);
  const std::vector<float> rows{3, 16777215, 5, 16777214};
  std::vector<float> result(4);
  const std::vector<int64_t> places{0, 1};
  plan.run({rows.data(), places, {}}, result.data());
  CHECK(result == std::vector<float>{1.5, -0.75, 2.5, -1.25});
}

TEST_CASE("a target that is an input has the input's values after the transforms") {
  TempDir folder;
  write_file(folder / "x", idx_bytes({2, 4}, std::string("\x00\x02\x04\x06\x08\x0a\x0c\x0e", 8)));
  write_file(folder / "y", idx_bytes({2}, std::string("\x03\x04", 2)));
  const TensorSpec image{"image", {2, 2, 1}};
  const std::string transforms = "\ntransforms: [{reshape: [2, 2, 1]}, {rescale: {scale: 0.5}}]";
  DatasetSpec spec = parse(folder, "train: {idx: {input: x, target: {input: image}}}" + transforms);
  const auto data = open_split(spec, *spec.train, {image}, {{"", {2, 2, 1}}});
  CHECK(read_all(*data, 1) == Values{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(read_all(*data, 0) == read_all(*data, 1));
  const std::string written = spec.resolved.to_yaml();
  CHECK(parse(folder, written).resolved.to_yaml() == written);
  // The input may be the target of one output while another output has a different target. A transform of
  // this target does not change the input.
  spec =
      parse(folder, "train: {idx: {input: x, targets: {same: {input: image}, digit: y}}}" +
                        transforms.substr(0, transforms.size() - 1) + ", {rescale: {scale: 2, of: [same]}}]");
  const auto both =
      open_split(spec, *spec.train, {image}, {{"digit", {}, DType::int32}, {"same", {2, 2, 1}}});
  CHECK(read_all(*both, 1) == Values{3, 4});
  CHECK(read_all(*both, 2) == Values{0, 2, 4, 6, 8, 10, 12, 14});
  CHECK(parse(folder, spec.resolved.to_yaml()).resolved.to_yaml() == spec.resolved.to_yaml());
  Diagnostics diagnostics;
  check_input_targets(spec, {{"x", {4}}}, {{"digit", {}, DType::int32}}, diagnostics);
  CHECK(diagnostics.count() == 2);
}

TEST_CASE("a Parquet file is an error that suggests to_csv") {
  TempDir folder;
  write_file(folder / "a.csv", std::string("PAR1\x15\x04\x00", 7));
  const DatasetSpec spec = parse(folder, "train: {csv: {file: a.csv, target: 0}}");
  CHECK(contains(error_of([&] { open_split(spec, *spec.train, {{"x", {1}}}, {kLabel}); }), "to_csv"));
  CHECK(contains(error_of([&] { open_inputs(given(folder / "a.csv"), spec, {{"x", {1}}}, {}); }), "to_csv"));
}

}  // namespace dtrain::test
