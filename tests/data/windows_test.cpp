// Windows of time series: the rows of each sample, splits by time, and forecasts.
#include "data/windows/windows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/columns/sample_forms.h"
#include "data/support.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;

/// A window has three rows of two features as its input, and two values in the following rows as its target.
const TensorSpec kInput{"x", {3, 2}}, kTarget{"", {2}};

/// A table with seven rows in temporal order: `load` has the values 0 to 6, and `heat` the values 10 to 16.
const std::string kOne = "load,heat\n0,10\n1,11\n2,12\n3,13\n4,14\n5,15\n6,16\n";

/// A table with two series, b and a. The rows of the series are mixed and not in temporal order.
const std::string kTwo =
    "site,day,load\nb,2026-01-02,21\na,2026-01-03,12\na,2026-01-01,10\nb,2026-01-01,20\na,2026-01-02,11\n"
    "b,2026-01-03,22\na,2026-01-04,13\n";

struct Table {
  explicit Table(const std::string& text) { write_file(folder / "t.csv", text); }

  DatasetSpec spec(const std::string& options, const std::string& windows,
                   const std::string& more = "") const {
    return parse(folder, "train: {csv: {file: t.csv, header: true, target: load" + options + "}, windows: {" +
                             windows + "}}" + more);
  }
  std::shared_ptr<const Dataset> open(const std::string& options, const std::string& windows,
                                      const TensorSpec& input = kInput,
                                      const TensorSpec& target = kTarget) const {
    const DatasetSpec parsed = spec(options, windows);
    return open_split(parsed, *parsed.train, {input}, {target}, true);
  }
  std::string error(const std::string& options, const std::string& windows, const TensorSpec& input = kInput,
                    const TensorSpec& target = kTarget) const {
    return error_of([&] { open(options, windows, input, target); });
  }
  TempDir folder;
};

}  // namespace

TEST_CASE("windows are consecutive rows, and targets are from the rows after them") {
  const Table table(kOne);
  const auto data = table.open("", "length: 3, horizon: 2");
  REQUIRE(data->size() == 3);
  CHECK(data->columns()[0].shape == Shape{3, 2});
  CHECK(data->columns()[1].shape == Shape{2});
  CHECK(read_rows(*data, {0}, 0) == Values{0, 10, 1, 11, 2, 12});
  CHECK(read_rows(*data, {2, 1}, 0) == Values{2, 12, 3, 13, 4, 14, 1, 11, 2, 12, 3, 13});
  CHECK(read_all(*data, 1) == Values{3, 4, 4, 5, 5, 6});
  CHECK(data->rows_in_files() == std::vector<int64_t>{2, 3, 4});
  CHECK(data->sample_id(1) == "3");
  CHECK(data->forecast_steps() == 0);

  CHECK(read_all(*table.open("", "length: 3, horizon: 2, stride: 2"), 1) == Values{3, 4, 5, 6});
  CHECK(read_all(*table.open("", "length: 3, horizon: 2, stride: 3"), 1) == Values{3, 4});
  const auto exogenous = table.open("", "length: 3, horizon: 2, past_targets: false", {"x", {3, 1}});
  CHECK(read_rows(*exogenous, {1}, 0) == Values{11, 12, 13});
  CHECK(read_all(*table.open("", "length: 3", kInput, {"", {}}), 1) == Values{3, 4, 5, 6});
}

TEST_CASE("a target may have several columns") {
  const Table table(kOne);
  const DatasetSpec spec = parse(
      table.folder,
      "train: {csv: {file: t.csv, header: true, target: [heat, load]}, windows: {length: 3, horizon: 2}}\n"
      "transforms: [standardize: {of: [target]}]");
  CHECK(parse(table.folder, spec.resolved.to_yaml()).resolved.to_yaml() == spec.resolved.to_yaml());
  const auto data = open_split(spec, *spec.train, {kInput}, {{"", {2, 2}}}, true);
  CHECK(data->facts().fitted.at("target")[0].numbers.at("mean") == Values{13, 3});
  CHECK(data->facts().source.fields.targets == std::vector<std::string>{"heat", "load"});
  const Values rows = read_rows(*data, {1}, 1);  // rows 4 and 5: `load` is 4 and 5, `heat` is 14 and 15
  for (size_t i = 0; i < 4; ++i) CHECK(rows[i] == doctest::Approx((i < 2 ? 1 : 2) / 2.0));

  const DatasetSpec plain = parse(
      table.folder, "train: {csv: {file: t.csv, header: true, target: [heat, load], inputs: {x: load}}}");
  CHECK(read_rows(*open_split(plain, *plain.train, {{"x", {1}}}, {{"", {2}}}), {2}, 1) == Values{12, 2});
  CHECK(contains(error_of([&] { parse(table.folder, "train: {csv: {file: t.csv, target: []}}"); }),
                 "expected a column or a list of columns"));
}

TEST_CASE("`by` divides the rows into series, and `time` sorts the rows of a series") {
  const Table table(kTwo);
  const TensorSpec input{"x", {2, 1}}, target{"", {1}};
  const auto data = table.open("", "length: 2, by: site, time: day", input, target);
  REQUIRE(data->size() == 3);  // the series of the first row is b
  CHECK(read_all(*data, 0) == Values{20, 21, 10, 11, 11, 12});
  CHECK(read_all(*data, 1) == Values{22, 12, 13});
  CHECK(data->rows_in_files() == std::vector<int64_t>{0, 4, 1});

  // Without the option `time`, the rows stay in the order of the file, and the column `day` is a feature.
  const auto unsorted = table.open(", drop: [day]", "length: 2, by: site", input, target);
  CHECK(read_all(*unsorted, 0) == Values{21, 20, 12, 10, 10, 11});

  // The columns of the times and of the series may also give features: parts of dates and categories.
  const auto dated = table.open(", dates: {day: [day]}, categories: [site]", "length: 2, by: site, time: day",
                                {"x", {2, 4}}, target);
  CHECK(read_rows(*dated, {0}, 0) == Values{0, 1, 1, 20, 0, 1, 2, 21});

  const Table numbers("t,load\n10,1\n9.5,0\n100,2\n");
  CHECK(read_all(*numbers.open("", "length: 1, time: t", {"x", {1, 1}}, target), 1) == Values{1, 2});
}

TEST_CASE("transforms of windows are fitted on each training row once") {
  const Table table(kOne);
  const DatasetSpec spec = table.spec("", "length: 3, horizon: 1",
                                      "\nvalidation: {split: {of: train, fraction: 0.3}}"
                                      "\ntransforms: [standardize, standardize: {of: [target]}]");
  const TensorSpec target{"", {1}};
  const auto train = open_split(spec, *spec.train, {kInput}, {target}, true);
  // The mean and the deviation are computed over rows 0 to 4, because the last two rows are for validation.
  const auto& fitted = train->facts().fitted;
  CHECK(fitted.at("x")[0].numbers.at("mean") == Values{2, 12});
  CHECK(fitted.at("target")[0].numbers.at("mean") == Values{2});
  CHECK(fitted.at("x")[0].numbers.at("deviation")[0] == doctest::Approx(std::sqrt(2.0)));
  CHECK(read_rows(*train, {1}, 1)[0] == doctest::Approx(2 / std::sqrt(2.0)));
  CHECK(read_rows(*train, {0}, 0)[1] == doctest::Approx(-2 / std::sqrt(2.0)));

  const auto form = train->stored_form(0);
  REQUIRE(form);
  CHECK(form->scale.size() == 6);
  CHECK(form->scale[4] == form->scale[0]);
}

TEST_CASE("caches store rows, not windows") {
  const Table table(kTwo);
  for (const std::string cache : {"none", "memory", "device", "{file: kept}"}) {
    CAPTURE(cache);
    const DatasetSpec spec = table.spec("", "length: 2, by: site, time: day", "\ncache: " + cache);
    for (int time = 0; time < 2; ++time) {
      const auto data = open_split(spec, *spec.train, {{"x", {2, 1}}}, {{"", {1}}}, true);
      CHECK(read_all(*data, 0) == Values{20, 21, 10, 11, 11, 12});
      std::vector<float> stored(2);
      const std::vector<int64_t> second{1};
      data->read_stored(0, second, stored.data());
      CHECK(stored == std::vector<float>{10, 11});
    }
  }
}

TEST_CASE("in splits by time, no target is in two splits") {
  std::mt19937 draw(1);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const int64_t length = 1 + draw() % 5, horizon = 1 + draw() % 4, stride = 1 + draw() % 3;
    std::string text = "site,t,load\n";
    const int series = 1 + static_cast<int>(draw() % 3);
    std::vector<std::string> lines;
    for (int site = 0; site < series; ++site)
      for (int t = 0, rows = 60 + static_cast<int>(draw() % 20); t < rows; ++t)
        lines.push_back(fmt::format("s{0},{1},{2}\n", site, t, 1000 * site + t));
    std::shuffle(lines.begin(), lines.end(), draw);
    for (const std::string& line : lines) text += line;
    const Table table(text);
    const DatasetSpec spec = table.spec(
        "", fmt::format("length: {}, horizon: {}, stride: {}, by: site, time: t", length, horizon, stride),
        "\nvalidation: {split: {of: train, fraction: 0.2}}\ntest: {split: {of: train, fraction: 0.1}}");
    // The first and the last target of each series, by split and series.
    std::map<std::string, std::map<int, std::pair<double, double>>> targets;
    for (const char* name : kSplitNames) {
      const auto data = open_split(spec, *spec.find(name), {{"x", {length, 1}}}, {{"", {horizon}}});
      const Values inputs = read_all(*data, 0), outputs = read_all(*data, 1);
      for (int64_t i = 0; i < data->size(); ++i) {
        const double first = inputs[static_cast<size_t>(i * length)];
        for (int64_t k = 0; k < length; ++k) CHECK(inputs[static_cast<size_t>(i * length + k)] == first + k);
        for (int64_t k = 0; k < horizon; ++k)
          CHECK(outputs[static_cast<size_t>(i * horizon + k)] == first + length + k);
        const int site = static_cast<int>(first) / 1000;
        CHECK(static_cast<int>(first + length + horizon - 1) / 1000 == site);
        auto& range = targets[name].try_emplace(site, 1e9, -1e9).first->second;
        range.first = std::min(range.first, first + length);
        range.second = std::max(range.second, first + length + horizon - 1);
      }
    }
    for (int site = 0; site < series; ++site) {
      REQUIRE(targets["train"].count(site) == 1);
      REQUIRE(targets["validation"].count(site) == 1);
      REQUIRE(targets["test"].count(site) == 1);
      CHECK(targets["train"][site].second < targets["validation"][site].first);
      CHECK(targets["validation"][site].second < targets["test"][site].first);
    }
  }
}

TEST_CASE("a fraction of a series is rounded to whole rows, and the training split has the remaining rows") {
  TimeParts parts{{0, 0.2, 0.1}, 0, 0};
  CHECK(parts.part_of(100) == std::pair<int64_t, int64_t>{0, 70});
  parts.wanted = 1;
  CHECK(parts.part_of(100) == std::pair<int64_t, int64_t>{70, 90});
  parts.wanted = 2;
  CHECK(parts.part_of(100) == std::pair<int64_t, int64_t>{90, 100});
  CHECK(parts.part_of(2) == std::pair<int64_t, int64_t>{1, 2});
  CHECK(TimeParts{}.part_of(7) == std::pair<int64_t, int64_t>{0, 7});
}

TEST_CASE("predictions continue the last window of each series") {
  const Table table(kTwo);
  DatasetSpec spec = table.spec("", "length: 2, by: site, time: day");
  const std::vector<TensorSpec> inputs{{"x", {2, 1}}}, targets{{"", {1}}};
  spec.facts = open_split(spec, *spec.train, inputs, targets, true)->facts();
  write_file(table.folder / "new.csv",
             "load,day,site,more\n3,2026-02-03,c,0\n1,2026-02-01,c,0\n9,2026-02-01,d,0\n2,2026-02-02,c,0\n8,"
             "2026-02-02,d,0\n");
  const auto data = open_inputs(given(table.folder / "new.csv"), spec, inputs, {});
  CHECK(data->size() == 2);
  CHECK(read_all(*data, 0) == Values{2, 3, 9, 8});
  CHECK(data->forecast_steps() == 1);
  CHECK(data->id_title() == "site");
  CHECK(data->sample_id(0) == "c");
  CHECK(data->sample_id(1) == "d");

  write_file(table.folder / "short.csv", "load,day,site\n3,2026-02-03,c\n");
  CHECK(contains(
      error_of([&] { open_inputs(given(table.folder / "short.csv"), spec, inputs, {}); }),
      "short.csv: windows: the series 'c' needs at least 2 rows (the length of a window), but has only 1"));
  write_file(table.folder / "other.csv", "load,day,sitE\n3,2026-02-03,c\n");
  CHECK(contains(error_of([&] { open_inputs(given(table.folder / "other.csv"), spec, inputs, {}); }),
                 "expected a column named 'site'; did you mean 'sitE'?"));

  const auto labeled = open_labeled(given(table.folder / "t.csv"), spec, inputs, targets, {});
  CHECK(read_all(*labeled, 1) == Values{22, 12, 13});
  CHECK(labeled->forecast_steps() == 0);
}

TEST_CASE("windows are made of arrays") {
  const TempDir folder;
  write_file(folder / "x.npy", npy_bytes("<f4", "(6, 1)", raw(std::vector<float>{5, 0, 4, 1, 3, 2})));
  write_file(folder / "t.npy", npy_bytes("<i4", "(6,)", raw(std::vector<int32_t>{50, 0, 40, 10, 30, 20})));
  DatasetSpec spec = parse(
      folder, "train: {npy: {input: x.npy, target: x.npy}, windows: {length: 2, horizon: 2, time: t.npy}}");
  const std::vector<TensorSpec> inputs{{"x", {2, 1}}}, targets{{"", {2, 1}}};
  const auto data = open_split(spec, *spec.train, inputs, targets, true);
  CHECK(read_all(*data, 0) == Values{0, 1, 1, 2, 2, 3});
  CHECK(read_all(*data, 1) == Values{2, 3, 3, 4, 4, 5});
  CHECK(data->identity().files.size() == 3);
  CHECK(contains(error_of([&] { open_inputs(given(folder / "x.npy"), spec, inputs, {}); }),
                 "the file must also contain 't.npy', which the run's windows need"));

  const auto mistake = [&](const std::string& key) {
    const DatasetSpec wrong =
        parse(folder, "train: {npy: {input: x.npy, target: x.npy}, windows: {length: 2, horizon: 2, " + key +
                          ": u.npy}}");
    return error_of([&] { open_split(wrong, *wrong.train, inputs, targets, true); });
  };
  CHECK(contains(mistake("time"), ":1:84: error: "));
  CHECK(contains(mistake("by"), ":1:82: error: "));

  spec = parse(folder, "train: {npy: {input: x.npy, target: x.npy}, windows: {length: 2, horizon: 2}}");
  const auto next = open_inputs(given(folder / "x.npy"), spec, inputs, {});
  CHECK(read_all(*next, 0) == Values{3, 2});
  CHECK(next->id_title() == "series");
  CHECK(!next->has_ids());

  const float nan = std::nanf("");
  write_file(folder / "s.npy", npy_bytes("<f4", "(6,)", raw(std::vector<float>{1, 1, 1, nan, nan, nan})));
  spec = parse(folder, "train: {npy: {input: x.npy, target: x.npy}, windows: {length: 2, by: s.npy}}");
  CHECK(contains(error_of([&] {
                   open_split(spec, *spec.train, inputs, {{"", {1, 1}}}, true);
                 }),
                 "must contain the name of a series in each row, but row 3 (counted from 0) has none"));
}

TEST_CASE("times and numbers of series in arrays keep all digits") {
  const TempDir folder;
  const std::vector<TensorSpec> inputs{{"x", {1, 1}}}, targets{{"", {1, 1}}};
  write_file(folder / "x.npy", npy_bytes("<f4", "(4, 1)", raw(std::vector<float>{3, 0, 2, 1})));
  // In float32, these times would be equal. The integers do not fit into int32.
  write_file(folder / "seconds.npy",
             npy_bytes("<f8", "(4,)", raw(std::vector<double>{1.7e9 + 3, 1.7e9, 1.7e9 + 2, 1.7e9 + 1})));
  constexpr int64_t kStart = 1'700'000'000'000;
  write_file(folder / "ms.npy",
             npy_bytes("<i8", "(4,)", raw(std::vector<int64_t>{kStart + 3, kStart, kStart + 2, kStart + 1})));
  for (const std::string time : {"seconds.npy", "ms.npy"}) {
    CAPTURE(time);
    const DatasetSpec spec = parse(folder,
                                   "train: {npy: {input: x.npy, target: x.npy}, windows: {length: 1, "
                                   "horizon: 1, time: " +
                                       time + "}}");
    CHECK(read_all(*open_split(spec, *spec.train, inputs, targets), 0) == std::vector<double>{0, 1, 2});
  }
  write_file(folder / "by.npy",
             npy_bytes("<f8", "(4,)", raw(std::vector<double>{16777217, 16777216, 16777217, 16777216})));
  const DatasetSpec spec = parse(
      folder, "train: {npy: {input: x.npy, target: x.npy}, windows: {length: 1, horizon: 1, by: by.npy}}");
  CHECK(open_split(spec, *spec.train, inputs, targets)->size() == 2);
}

TEST_CASE("the shapes of windows are known without the model") {
  const Table table(kOne);
  const DatasetSpec spec = table.spec("", "length: 3, horizon: 2");
  const SampleForms forms =
      training_forms(spec, {{"x", std::nullopt}}, {{"", std::nullopt, DType::float32}}, {});
  CHECK(forms.inputs == std::vector<Shape>{{3, 2}});
  CHECK(forms.targets == std::vector<Shape>{{2}});
}

TEST_CASE("mistakes in the options of windows are reported with their locations") {
  const Table one(kOne), two(kTwo);
  const TensorSpec input{"x", {2, 1}}, target{"", {1}};
  CHECK(contains(one.error("", "length: 6, horizon: 2", {"x", {6, 2}}),
                 "t.csv: windows: the file needs at least 8 rows (length + horizon), but has only 7"));
  CHECK(contains(two.error("", "length: 3, by: site, time: day", {"x", {3, 1}}, target),
                 "the series 'b' needs at least 4 rows (length + horizon), but has only 3"));
  CHECK(contains(two.error("", "length: 2, by: sit, time: day", input, target),
                 "expected a column named 'sit'; did you mean 'site'?"));
  CHECK(contains(one.error("", "length: 2, by: meter", input, target),
                 "; if all rows belong to one series, leave out 'by'"));
  CHECK_FALSE(contains(one.error("", "length: 2, time: meter", input, target), "leave out"));
  CHECK(contains(two.error("", "length: 2, by: site, time: site", input, target),
                 "'time' the column of the times, but both are 'site'; give two different columns"));
  CHECK(contains(two.error(", drop: [site]", "length: 2, time: day", input, target),
                 "windows: rows 2 and 3 (counted from 0) of the file have the same time, but each row must "
                 "have a different time; if the file has several series, set 'by' to the column that names "
                 "the series; if a clock was set back (daylight saving time), convert the times to UTC or "
                 "remove the repeated rows"));
  CHECK(contains(Table(kTwo + "b,2026-01-01,24\n").error("", "length: 2, by: site, time: day", input, target),
                 "windows: rows 3 and 7 (counted from 0) of the series 'b' have the same time, but each row "
                 "must have a different time; if a clock was set back (daylight saving time), convert the"));
  const Table wrong("t,load\n2026-01-01,1\nsoon,2\n2026-01-03,3\n"), gap("t,load\n1,1\n,2\n3,3\n");
  CHECK(contains(wrong.error("", "length: 2, time: t", input, target), "t.csv:3:1: expected a date"));
  CHECK(contains(gap.error("", "length: 2, time: t", input, target), "t.csv:3:1: expected a finite number"));
  const Table no_name("site,load\na,1\n,2\na,3\n");
  CHECK(contains(
      no_name.error("", "length: 2, by: site", input, target),
      "t.csv: 'site', which the option 'by' of 'windows' names, must contain the name of a series in "
      "each row, but row 1"));
  CHECK(contains(one.error("", "length: 3, horizon: 2", {"x", {4, 2}}),
                 "windows: the model's input 'x' must have the shape 3x(features), because the length is 3, "
                 "but has the shape 4x2"));
  CHECK(contains(one.error("", "length: 3, horizon: 2", kInput, {"", {3}}),
                 "windows: the model's output must give predictions of the shape 2 or 2x(targets), because "
                 "the horizon is 2, but gives the shape 3; with `units: auto`, the last layer gets the right "
                 "size"));
  CHECK(contains(one.error("", "length: 3, horizon: 2", {"x", {3, 5}}), "'x' needs 5 float32 per sample"));

  const auto mistake = [&](const std::string& yaml) { return error_of([&] { parse(one.folder, yaml); }); };
  const std::string csv = "{csv: {file: t.csv, target: load}, windows: ";
  CHECK(contains(mistake("train: " + csv + "{horizon: 2}}"), "length"));
  CHECK(contains(mistake("train: " + csv + "{length: 3, horizont: 2}}"), "unknown key 'horizont'"));
  CHECK(contains(mistake("train: {csv: {file: t.csv, heder: true}, windws: {length: 3}}"),
                 "unknown key 'windws' at the same level as the reader; did you mean 'windows'?"));
  CHECK(contains(mistake("train: {csv: {file: t.csv, heder: true}, windws: {length: 3}}"), "'heder'"));
  CHECK(contains(mistake("train: {csv: {file: t.csv}, limit: 3}"),
                 "unknown key 'limit' at the same level as the reader; expected one of rows, windows"));
  CHECK(contains(mistake("train: {images: {directory: t}, windows: {length: 3}}"),
                 "windows: expected one of the readers csv, npy and hdf5"));
  CHECK(contains(mistake("train: {csv: {file: t.csv, target: load, weight: w}, windows: {length: 3}}"),
                 "windows: windows do not support the csv reader's option 'weight'"));
  CHECK(contains(mistake("train: {csv: {file: t.csv, labels: {column: tags}}, windows: {length: 3}}"),
                 "windows: the texts of the csv reader's 'labels' cannot be used as inputs"));
  CHECK(contains(mistake("train: {npy: {input: x, target: y}, windows: {length: 3, past_targets: true}}"),
                 "windows: only the csv reader supports the option 'past_targets'"));
  CHECK(contains(mistake("train: {npy: {input: x, target: {input: x}}, windows: {length: 3}}"),
                 "a target cannot be an input"));
  CHECK(contains(
      mistake("train: " + csv + "{length: 3}}\nvalidation: {split: {of: train, fraction: 0.2, seed: 1}}"),
      "dataset.yaml:2:13: error: split: windows are split by time and not at random; remove 'seed'"));
  CHECK(contains(mistake("train: " + csv + "{length: 3}}\nvalidation: " + csv + "{length: 4}}"),
                 "another split has length 3, horizon 1, but this split has length 4, horizon 1; give all "
                 "splits windows of the same length and horizon"));
  CHECK(contains(mistake("train: " + csv + "{length: 3}}\naugment: [mix_up]"),
                 "augment: windows of rows cannot be augmented"));
}

TEST_CASE(
    "a split that is too small for a window is an error, or a warning if only some series are too short") {
  const Table table(kOne);
  const DatasetSpec spec =
      table.spec("", "length: 3, horizon: 2", "\nvalidation: {split: {of: train, fraction: 0.1}}");
  CHECK(contains(error_of([&] { open_split(spec, *spec.validation, {kInput}, {kTarget}); }),
                 "no series has enough rows for a window in this split: the split has 1 row of the file, but "
                 "at least 2 are needed for length 3 and horizon 2"));
  // There are too few rows before the validation split for the input of a window.
  const DatasetSpec early = table.spec("", "length: 4, horizon: 2",
                                       "\nvalidation: {split: {of: train, fraction: 0.4}}"
                                       "\ntest: {split: {of: train, fraction: 0.4}}");
  CHECK(contains(error_of([&] {
                   open_split(early, *early.validation, {{"x", {4, 2}}}, {kTarget});
                 }),
                 "the split has 3 rows of the file, but at least 5 are needed for length 4 and horizon 2"));
  std::string text = "site,load\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i < 34 ? "long" : "short", i);
  const Table uneven(text);
  const DatasetSpec some =
      uneven.spec("", "length: 3, horizon: 2, by: site", "\nvalidation: {split: {of: train, fraction: 0.1}}");
  const auto validation = open_split(some, *some.validation, {{"x", {3, 1}}}, {kTarget});
  CHECK(validation->size() == 2);
  REQUIRE(validation->warnings().size() == 1);
  CHECK(contains(validation->warnings()[0], "1 of 2 series have too few rows"));
}

}  // namespace dtrain::test
