#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include <doctest/doctest.h>

#include "base/json.h"
#include "config/load/load.h"
#include "config/yaml/yaml.h"
#include "data/columns/column_transforms.h"
#include "data/readers/reader.h"
#include "data/support.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
const TensorSpec kLabel{"y", {}, DType::int32};

/// Four images of 2x2 bytes, 0 to 15, with labels 0 to 3.
struct Fixture {
  Fixture() {
    std::string values;
    for (int i = 0; i < 16; ++i) values += static_cast<char>(i);
    write_file(folder / "x", idx_bytes({4, 2, 2}, values));
    write_file(folder / "y", idx_bytes({4}, values.substr(0, 4)));
  }
  std::shared_ptr<const Dataset> open(const std::string& more, const TensorSpec& input,
                                      const TensorSpec& target = kLabel) const {
    const DatasetSpec spec = parse(folder, "train: {idx: {input: x, target: y}}\n" + more);
    return open_split(spec, *spec.train, {input}, {target});
  }
  std::string error(const std::string& more, const TensorSpec& input,
                    const TensorSpec& target = kLabel) const {
    return error_of([&] { read_all(*open(more, input, target), 1); });
  }
  TempDir folder;
};

/// Returns true if the values are approximately equal, element by element.
bool close(const Values& found, const Values& expected) {
  if (found.size() != expected.size()) return false;
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != doctest::Approx(expected[i]).epsilon(1e-5)) return false;
  return true;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "transforms give the same values in memory and from the file") {
  for (const std::string cache : {"\ncache: none", "\ncache: memory", "\ncache: {file: kept}"}) {
    CAPTURE(cache);
    const auto first = [&](const std::string& transforms, const TensorSpec& input) {
      return read_rows(*open("transforms: [" + transforms + "]" + cache, input), {1}, 0);
    };
    CHECK(first("reshape: [4]", {"x", {4}}) == Values{4, 5, 6, 7});
    CHECK(first("rescale: {scale: 0.5, offset: 1}", {"x", {2, 2}}) == Values{3, 3.5, 4, 4.5});
    CHECK(close(first("rescale: {scale: 2}, normalize: {mean: 2, std: 4}", {"x", {2, 2}}), {1.5, 2, 2.5, 3}));
    CHECK(
        close(first("normalize: {mean: [4, 1], std: [1, 2]}, rescale: {scale: 10}, reshape: [4]", {"x", {4}}),
              {0, 20, 20, 30}));
    CHECK(first("cast: int32", {"x", {2, 2}, DType::int32}) == Values{4, 5, 6, 7});
    CHECK(first("rescale: {scale: 0.3}, cast: int32", {"x", {2, 2}, DType::int32}) == Values{1, 1, 1, 2});
    CHECK(first("rescale: {scale: 100, offset: -500}, cast: uint8", {"x", {2, 2}, DType::uint8}) ==
          Values{0, 0, 100, 200});
    CHECK(first("rescale: {scale: 0.3}, cast: int32, rescale: {scale: 2}", {"x", {2, 2}}) ==
          Values{2, 2, 2, 4});
    CHECK(first("cast: uint8", {"x", {2, 2, 1}}) == Values{4, 5, 6, 7});
    const auto hot = open("transforms: [one_hot: 4]" + cache, {"x", {2, 2}}, {"y", {4}});
    CHECK(read_rows(*hot, {2, 0}, 1) == Values{0, 0, 1, 0, 1, 0, 0, 0});
    CHECK(read_rows(*hot, {2}, 0) == Values{8, 9, 10, 11});
  }
}

TEST_CASE_FIXTURE(
    Fixture, "a transform applies to the columns named in `of`, or by default to all columns of its kind") {
  const TensorSpec image{"image", {2, 2}}, ids{"ids", {2, 2}, DType::int32}, mask{"mask", {2, 2}};
  const auto open_all = [&](const std::string& transforms) {
    const DatasetSpec spec =
        parse(folder, "train: {idx: {inputs: {image: x, ids: x}, targets: {mask: x}}}\ntransforms: [" +
                          transforms + "]");
    CHECK(parse(folder, spec.resolved.to_yaml()).resolved.to_yaml() == spec.resolved.to_yaml());
    const auto data = open_split(spec, *spec.train, {image, ids}, {mask});
    std::vector<Values> columns;
    for (size_t i = 0; i < 3; ++i) columns.push_back(read_rows(*data, {1}, i));
    return columns;
  };
  const Values raw{4, 5, 6, 7}, doubled{8, 10, 12, 14};
  CHECK(open_all("rescale: {scale: 2}") == std::vector<Values>{doubled, raw, raw});
  CHECK(open_all("rescale: {scale: 2, of: [mask]}") == std::vector<Values>{raw, raw, doubled});
  CHECK(open_all("rescale: {scale: 2, of: [mask, image]}") == std::vector<Values>{doubled, raw, doubled});
  // The column `ids` must have integers at the end. Because `cast` converts the numbers to integers, numeric
  // transforms may come before it.
  CHECK(open_all("rescale: {scale: 2, of: [ids]}, cast: {dtype: int32, of: [ids]}") ==
        std::vector<Values>{raw, doubled, raw});
  CHECK(open_all("reshape: [4], reshape: {shape: [2, 2], of: [image, ids]}") ==
        std::vector<Values>{raw, raw, raw});

  const auto lone = [&](const std::string& transforms) {
    return read_rows(*open("transforms: [" + transforms + "]", {"x", {2, 2}}, {"", {}, DType::float32}), {2},
                     1);
  };
  CHECK(lone("rescale: {scale: 3, of: [target]}") == Values{6});
  CHECK(lone("rescale: {scale: 3, of: [x]}") == Values{2});

  const auto mistakes = [&](const std::string& transforms, const std::vector<TensorSpec>& inputs) {
    return error_of([&] {
      Diagnostics diagnostics;
      check_transforms(parse(folder, "train: {idx: {input: x}}\ntransforms: [" + transforms + "]").transforms,
                       inputs, {mask}, diagnostics);
      diagnostics.throw_if_errors();
    });
  };
  CHECK(mistakes("rescale: {scale: 2}, rescale: {scale: 2, of: [ids, mask]}, cast: uint8", {image, ids})
            .empty());
  CHECK(contains(mistakes("rescale: {scale: 2, of: [image, mas]}", {image, ids}),
                 "dataset.yaml:2:46: error: rescale: `of` contains 'mas', but the model has no input or "
                 "target with this name; did you mean 'mask'?"));
  CHECK(contains(mistakes("cast: int32, normalize: {mean: 0, std: 1}", {ids}),
                 "dataset.yaml:2:27: error: normalize: by default, this transform applies to none of the "
                 "model's inputs and targets; name the columns to transform, for example `of: [ids]`"));
  const auto error_in = [&](const std::string& transforms) { return mistakes(transforms, {image}); };
  CHECK(contains(error_in("rescale: {scale: 2, of: []}"), "dataset.yaml:2:38: error: rescale: of: expected"));
  CHECK(contains(error_in("rescale: {scale: 2, of: image}"), "rescale: of: expected a list"));
  CHECK(contains(error_in("rescale: {scale: 2, off: [image]}"), "unknown key 'off' in rescale"));
  CHECK(contains(dataset_json_schema().dump(), "names of the inputs and targets to transform"));
}

TEST_CASE_FIXTURE(Fixture, "a mismatch of shapes is an error with both shapes and the location") {
  const TensorSpec image{"x", {2, 2}};
  CHECK(contains(
      error("transforms: [reshape: [5]]", image),
      "reshape: a sample must have 5 elements for the new shape 5, but has 4 elements in the shape 2x2 of"));
  CHECK(contains(error("transforms: [reshape: [5]]", image), "dataset.yaml:2:"));
  CHECK(contains(error("", {"x", {4}}), "'x' needs 4 float32 per sample, but the data have 2x2 uint8"));
  CHECK(contains(error("transforms: [rescale: {scale: 2, of: [x]}]", {"x", {2, 2}, DType::int32}),
                 "the data have 2x2 float32"));
  CHECK(contains(error("transforms: [normalize: {mean: [1, 2, 3], std: 1}]", image),
                 "has 3 numbers, one per channel"));
  CHECK(contains(error("transforms: [one_hot: 2]", image, {"y", {2}}), "from 0 to 1, but found 2 in row 2"));
}

TEST_CASE_FIXTURE(Fixture, "`rows` selects a range of samples") {
  for (const std::string cache : {"none", "memory", "{file: kept}"}) {
    const std::string reader = "{idx: {input: x, target: y}";
    const DatasetSpec spec = parse(folder, "train: " + reader + ", rows: [1, 3]}\nvalidation: " + reader +
                                               ", rows: [2, 4]}\ncache: " + cache);
    const auto train = open_split(spec, *spec.find("train"), {{"x", {2, 2}}}, {kLabel});
    const auto validation = open_split(spec, *spec.find("validation"), {{"x", {2, 2}}}, {kLabel});
    CHECK(read_all(*train, 1) == Values{1, 2});
    CHECK(read_all(*validation, 1) == Values{2, 3});
    CHECK(read_rows(*validation, {1}, 0) == Values{12, 13, 14, 15});
    CHECK(spec.find("test") == nullptr);
  }
  const DatasetSpec late = parse(folder, "train: {idx: {input: x, target: y}, rows: [3, 5]}");
  CHECK(contains(error_of([&] {
                   open_split(late, *late.train, {{"x", {2, 2}}}, {kLabel});
                 }),
                 "has only 4 samples"));
}

TEST_CASE_FIXTURE(Fixture, "a cache file is rebuilt if the data, the options or the file changed") {
  const auto labels = [&](const std::string& rows = "") {
    const DatasetSpec spec =
        parse(folder, "train: {idx: {input: x, target: y}" + rows + "}\ncache: {file: kept}");
    return read_all(*open_split(spec, *spec.train, {{"x", {2, 2}}}, {kLabel}), 1);
  };
  CHECK(labels() == Values{0, 1, 2, 3});
  const std::string kept = folder / "kept.train";
  std::string bytes = read_file(kept);
  REQUIRE(bytes.size() == 3 * 4096 - 4096 + 4096);  // header and two arrays

  // The test changes a label in the cache file. If this label is read, the data come from the cache and not
  // from the original file.
  bytes[8192] = 9;
  write_file(kept, bytes);
  CHECK(labels() == Values{9, 1, 2, 3});
  CHECK(labels(", rows: [0, 2]") == Values{0, 1});
  CHECK(labels() == Values{0, 1, 2, 3});
  write_file(folder / "y", idx_bytes({4}, "\x05\x06\x07\x08"));
  std::filesystem::last_write_time(folder / "y",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(labels() == Values{5, 6, 7, 8});
  // The file has new labels, but the same size and the same modification time as before.
  const auto time = std::filesystem::last_write_time(folder / "y");
  // The clock of the file system may be coarse, so the test waits until the time has changed.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  write_file(folder / "y", idx_bytes({4}, "\x05\x06\x08\x07"));
  std::filesystem::last_write_time(folder / "y", time);
  CHECK(labels() == Values{5, 6, 8, 7});
  write_file(folder / "y", idx_bytes({4}, "\x05\x06\x07\x08"));
  CHECK(labels() == Values{5, 6, 7, 8});

  const std::string good = read_file(kept);
  for (const size_t length : {size_t{8}, size_t{100}, good.size() - 1}) {
    write_file(kept, good.substr(0, length));
    CHECK(labels() == Values{5, 6, 7, 8});
  }
  // If these bytes are damaged, the cache file is still correct or is written again.
  for (size_t at = 8; at < 600; at += 7) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    write_file(kept, damaged);
    CHECK(labels() == Values{5, 6, 7, 8});
  }
  const auto entries =
      std::distance(std::filesystem::directory_iterator(std::filesystem::path(kept).parent_path()), {});
  CHECK(entries == 3);  // x, y and kept.train; no temporary file is left
}

TEST_CASE_FIXTURE(Fixture, "a file that is not dtrain's cache is never overwritten") {
  const auto error = [&](const std::string& cache) {
    return error_of([&] { open("cache: {file: " + cache + "}", {"x", {2, 2}}); });
  };
  const auto refused = [&](const std::string& bytes) {
    write_file(folder / "kept.train", bytes);
    const std::string message = error("kept");
    CHECK(contains(message, "dataset.yaml:1:8: error: " + folder / "kept.train"));
    CHECK(contains(message, "a file with this name exists and is not a cache file of dtrain"));
    CHECK(read_file(folder / "kept.train") == bytes);
  };
  refused("1,2,3\n4,5,6\n");
  refused("");
  refused("DTCAC");
  refused("dtcache1" + std::string(5000, 'x'));
  std::filesystem::remove(folder / "kept.train");
  std::filesystem::create_directory(folder / "kept.train");
  CHECK(contains(error("kept"), "a file with this name exists and is not a cache file of dtrain"));
  std::filesystem::remove(folder / "kept.train");
  std::filesystem::create_symlink(folder / "nowhere", folder / "kept.train");
  CHECK(contains(error("kept"), "a file with this name exists and is not a cache file of dtrain"));
  CHECK(contains(error("missing/kept"), "missing cannot be accessed: No such file"));
  CHECK(contains(error("x/kept"), "/x is not a folder"));
  // check_cache() reports the same error without opening files.
  const DatasetSpec spec = parse(folder, "train: {idx: {input: x, target: y}}\ncache: {file: missing/kept}");
  CHECK(contains(error_of([&] { check_cache(spec, "train"); }), "missing cannot be accessed"));
}

TEST_CASE_FIXTURE(Fixture, "the resolved configuration opens the same data from any directory") {
  std::filesystem::create_directory(folder / "data");
  std::filesystem::rename(folder / "x", folder / "data/x");
  std::filesystem::rename(folder / "y", folder / "data/y");
  const DatasetSpec spec = parse(folder,
                                 "root: data\ntrain: {idx: {input: x, target: y}, rows: [1, 2]}\n"
                                 "transforms: [reshape: [4], rescale: {scale: 2}]\ncache: {file: kept}\n");
  CHECK(spec.root == folder / "data");
  const TempDir elsewhere;
  const DatasetSpec again = parse(elsewhere, spec.resolved.to_yaml());
  CHECK(again.resolved.to_yaml() == spec.resolved.to_yaml());
  const auto data = open_split(again, *again.train, {{"x", {4}}}, {kLabel});
  CHECK(read_all(*data, 0) == Values{8, 10, 12, 14});
  CHECK(std::filesystem::exists(folder / "kept.train"));
}

TEST_CASE_FIXTURE(Fixture, "images are augmented if the model also has other inputs") {
  const std::string train = "train: {idx: {inputs: {v: y, image: x}, target: y}}\n";
  const std::string augment = "augment: [{random_brightness: {factor: [0.1, 0.1]}}]";
  const std::vector<TensorSpec> inputs{{"v", {1}}, {"image", {2, 2}}}, vectors{{"v", {1}}, {"image", {4}}};
  const auto open = [&](const std::string& yaml, const std::vector<TensorSpec>& wanted) {
    const DatasetSpec spec = parse(folder, yaml);
    return open_split(spec, *spec.train, wanted, {kLabel}, true);
  };
  const auto data = open(train + augment, inputs);
  CHECK(read_all(*data, 0) == Values{0, 1, 2, 3});
  CHECK(close(read_rows(*data, {0, 3}, 1), {25.5, 26.5, 27.5, 28.5, 37.5, 38.5, 39.5, 40.5}));
  // Augmentations of vectors are an error, because a column of vectors is never used as images.
  write_file(folder / "x", idx_bytes({4, 4}, std::string(16, 'x')));
  CHECK(contains(error_of([&] { open(train + augment, vectors); }),
                 "dataset.yaml:2:12: error: augment: expected images of shape [height, width, channels], but "
                 "found the shape 1 for the input 'v', 4 for the input 'image'"));
}

/// Calls `visit` with the "properties" of each JSON schema of a mapping in `schema`, including nested
/// schemas.
void for_each_mapping(const Json& schema, const std::function<void(const Json& fields)>& visit) {
  if (schema.is_array())
    for (const Json& item : schema.items()) for_each_mapping(item, visit);
  if (!schema.is_object()) return;
  for (const auto& [key, value] : schema.entries()) {
    if (key == "properties") visit(value);
    for_each_mapping(value, visit);
  }
}

TEST_CASE("validation on training data causes a warning") {
  const auto warnings = [](const std::string& validation, const std::string& train = "") {
    Diagnostics diagnostics;
    parse_dataset(parse_yaml("train: {npy: {input: a.npy}" + train + "}\nvalidation: " + validation, "d.yaml",
                             diagnostics),
                  diagnostics);
    diagnostics.throw_if_errors();
    return diagnostics.warnings();
  };
  REQUIRE(warnings("{npy: {input: a.npy}}").size() == 1);
  CHECK(
      contains(warnings("{npy: {input: a.npy}}")[0],
               "d.yaml:2:13: warning: validation: this split has samples in common with the training split"));
  CHECK(warnings("{npy: {input: b.npy}}").empty());
  CHECK(warnings("{split: {of: train, fraction: 0.1}}").empty());
  CHECK(warnings("{npy: {input: a.npy}, rows: [10, 20]}", ", rows: [0, 10]").empty());
  CHECK(warnings("{npy: {input: a.npy}, rows: [9, 20]}", ", rows: [0, 10]").size() == 1);
}

TEST_CASE("the JSON schema of every reader accepts an input as target") {
  std::set<std::string> readers;
  for_each_mapping(Codec<SplitSpec>::schema(), [&](const Json& fields) {
    for (const auto& [name, options] : fields.entries()) {
      if (!registry<Reader>().contains(name)) continue;
      for_each_mapping(options, [&, reader = name](const Json& option_fields) {
        const Json* target = option_fields.find("target");
        if (target && contains(target->dump(), "use the input NAME, after the transforms"))
          readers.insert(reader);
      });
    }
  });
  const std::vector<std::string> names = registry<Reader>().names();
  CHECK(readers == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE_FIXTURE(Fixture, "errors in the configuration are found without reading a file") {
  const auto error = [&](const std::string& yaml) { return error_of([&] { parse(folder, yaml); }); };
  CHECK(contains(error("train: {idxx: {input: x}}"), "did you mean 'idx'?"));
  CHECK(contains(error("train: {idx: {inptu: x}}"), "did you mean 'input'?"));
  CHECK(contains(error("train: {idx: {target: x}}"), "'input' (for the only input) or 'inputs'"));
  CHECK(contains(error("train: {idx: {input: x}, rows: [5, 2]}"),
                 "dataset.yaml:1:32: error: rows: expected a range [from, to)"));
  CHECK(contains(error("shuffle: true"), "at least one of train"));
  CHECK(contains(error("train: {synthetic: {samples: 0}}"), "samples"));
  CHECK(contains(error("train: {synthetic: {samples: 5, target: {}}}"),
                 "give either 'classes' (for a class index) or 'shape' (for an array)"));
  CHECK(contains(error("train: {idx: {input: x}}\ncache: disk"), "cache"));
  CHECK(contains(error("train: {idx: {input: x}}\ntransforms: [normalize: {mean: 0, std: 0}]"), "positive"));
  CHECK(contains(error("train: {idx: {input: x}}\ntransforms: [reshpe: [1]]"), "did you mean 'reshape'?"));
  CHECK(error("train: {csv: {file: x, target: -1, header: true, delimiter: ','}}").empty());
  CHECK(contains(dataset_json_schema().dump(), "\"rows\""));
}

}  // namespace dtrain::test
