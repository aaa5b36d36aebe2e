#include "data/splits/draw_split.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/support.h"

namespace dtrain::test {

namespace {
using Values = std::vector<double>;
const TensorSpec kLabel{"", {}, DType::int32};
}  // namespace

TEST_CASE("drawn splits are disjoint, stratified, and depend only on the seed") {
  std::vector<double> labels;
  for (int i = 0; i < 1000; ++i) labels.push_back(i % 10 == 0 ? 1 : i == 501 ? 2 : 0);
  const std::vector<Draw> draws{{0.15, labels}, {0.15, labels}};
  const auto parts = draw_splits(1000, draws, 7);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].size() == 150);
  CHECK(parts[1].size() == 150);
  std::set<int64_t> all;
  for (const auto& part : parts) {
    CHECK(std::is_sorted(part.begin(), part.end()));
    all.insert(part.begin(), part.end());
    std::map<double, int> counts;
    for (const int64_t row : part) ++counts[labels[static_cast<size_t>(row)]];
    CHECK(counts[1] == (&part == &parts[2] ? 70 : 15));
    CHECK(counts[2] == (&part == &parts[2] ? 1 : 0));
  }
  CHECK(all.size() == 1000);
  CHECK(draw_splits(1000, draws, 7) == parts);
  CHECK(draw_splits(1000, draws, 8)[0] != parts[0]);
  CHECK(draw_splits(1000, std::vector<Draw>{{0.15, labels}}, 7)[0] == parts[0]);
  const auto plain = draw_splits(10, std::vector<Draw>{{0.25, {}}}, 7);
  CHECK(plain[0].size() == 3);
  CHECK(plain[1].size() == 7);
}

TEST_CASE("split: a misspelled name of the other split is an error that suggests the name") {
  const TempDir folder;
  write_file(folder / "a.csv", "1,0\n2,1\n");
  const auto error = [&](const std::string& of) {
    return error_of([&] {
      parse(folder,
            "train: {csv: {file: a.csv, target: -1}}\ntest: {split: {of: train, fraction: 0.1}}\n"
            "validation: {split: {of: " +
                of + ", fraction: 0.25}}\n");
    });
  };
  CHECK(contains(error("trian"), "'trian' is missing or has no reader; did you mean 'train'?"));
  CHECK(contains(error("test"), "'test' is missing or has no reader; expected one of train"));
}

TEST_CASE("split: a separate seed makes the split independent of the run's seed") {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i, i % 2);
  write_file(folder / "a.csv", text);
  const auto validation_of = [&](const std::string& options, uint64_t seed,
                                 std::optional<uint64_t> known = {}) {
    DatasetSpec spec =
        parse(folder,
              "train: {csv: {file: a.csv, target: -1}}\nvalidation: {split: {of: train, " + options + "}}\n");
    spec.seed = seed;
    spec.facts.split_seed = known;
    return open_split(spec, *spec.validation, {{"x", {1}}}, {{"", {}, DType::int32}})->rows_in_files();
  };
  const auto by_run = validation_of("fraction: 0.25", 1);
  CHECK(by_run.size() == 10);
  CHECK(validation_of("fraction: 0.25", 2) != by_run);
  CHECK(validation_of("fraction: 0.25, seed: 1", 2) == by_run);
  CHECK(validation_of("fraction: 0.25, seed: 1", 2, 7) == by_run);
  CHECK(contains(error_of([&] {
                   parse(folder,
                         "train: {csv: {file: a.csv, target: -1}}\nvalidation: {split: {of: train, fraction: "
                         "0.2, seed: 1}}\ntest: {split: {of: train, fraction: 0.2, seed: 2}}\n");
                 }),
                 "must have the same seed, but the seeds 1 and 2 are given"));
}

TEST_CASE("split: a split that is drawn from another split is the same for every reader and cache") {
  TempDir folder;
  std::string labels, values, table = "x,y\n";
  for (int i = 0; i < 40; ++i) {
    labels += static_cast<char>(i % 4 == 0);
    values += static_cast<char>(i);
    table += fmt::format("{},{}\n", i, i % 4 == 0 ? "a" : "b");
  }
  write_file(folder / "x", idx_bytes({40, 1}, values));
  write_file(folder / "y", idx_bytes({40}, labels));
  write_file(folder / "a.csv", table);
  for (const std::string reader :
       {"idx: {input: x, target: y}", "csv: {file: a.csv, header: true, target: y}"})
    for (const std::string cache : {"none", "memory", "{file: kept}"}) {
      CAPTURE(reader);
      CAPTURE(cache);
      DatasetSpec spec =
          parse(folder, "train: {" + reader + ", rows: [0, 32]}\n" +
                            "validation: {split: {of: train, fraction: 0.25, stratify: true}}\n"
                            "test: {split: {of: train, fraction: 0.25}}\ncache: " +
                            cache);
      spec.seed = 3;
      const auto train = open_split(spec, *spec.train, {{"x", {1}}}, {kLabel});
      spec.facts = train->facts();
      CHECK(spec.facts.split_seed == 3);
      spec.seed = 4;  // has no effect: the drawn splits depend on facts.split_seed
      std::set<double> all;
      for (const char* name : {"train", "validation", "test"}) {
        const auto data = open_split(spec, *spec.find(name), {{"x", {1}}}, {kLabel});
        CHECK(data->size() == (std::string(name) == "train" ? 16 : 8));
        const Values x = read_all(*data, 0), y = read_all(*data, 1);
        all.insert(x.begin(), x.end());
        const double rare = reader[0] == 'i' ? 1 : 0;  // the rare label is in 8 of 32 rows
        if (std::string(name) == "validation") CHECK(std::count(y.begin(), y.end(), rare) == 2);
        for (size_t i = 0; i < x.size(); ++i) {
          CHECK((static_cast<int>(x[i]) % 4 == 0) == (y[i] == rare));
          CHECK(data->sample_name(static_cast<int64_t>(i)) == fmt::format("row {}", x[i]));
        }
        CHECK(!data->identity().drawn.empty());
      }
      CHECK(all.size() == 32);
      CHECK(*all.rbegin() == 31);
    }
  const auto refused = [&](const std::string& yaml) { return error_of([&] { parse(folder, yaml); }); };
  const std::string train = "train: {idx: {input: x, target: y}}\n";
  CHECK(contains(refused(train + "test: {split: {of: validation, fraction: 0.1}}"), "'of'"));
  CHECK(contains(refused(train + "test: {split: {of: train, fraction: 1.5}}"), "a fraction between 0 and 1"));
  CHECK(contains(refused(train + "test: {split: {of: train, fraction: 0.5}}\n"
                                 "validation: {split: {of: train, fraction: 0.5}}"),
                 "the fractions drawn from 'train' leave no samples"));
  CHECK(contains(
      refused(train + "test: {split: {of: train, fraction: 0.5}, rows: [0, 2]}"),
      "'rows' cannot be used together with 'split', because 'split' draws samples of another split"));
}

TEST_CASE("a stratified split needs a target with one class per sample") {
  const TempDir folder;
  write_file(folder / "x", idx_bytes({6, 1}, std::string(6, '\1')));
  write_file(folder / "pairs", idx_bytes({6, 2}, std::string(12, '\1')));
  const DatasetSpec spec = parse(folder,
                                 "train: {idx: {input: x, target: pairs}}\n"
                                 "validation: {split: {of: train, fraction: 0.5, stratify: true}}");
  CHECK(contains(error_of([&] {
                   open_split(spec, *spec.validation, {{"x", {1}}}, {{"", {2}}});
                 }),
                 "stratify: the target must have one class per sample, but found 2 numbers per sample"));
}

}  // namespace dtrain::test
