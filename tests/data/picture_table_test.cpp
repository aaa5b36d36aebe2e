// Images listed in a CSV file: paths, targets, and the locations of errors.
#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "support.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

namespace fs = std::filesystem;

const std::vector<TensorSpec> kInput{{"image", {4, 5, 3}, DType::float32}};
const std::vector<TensorSpec> kClass{{"", {}, DType::int32}}, kNumber{{"", {1}, DType::float32}};

/// Writes an image with `number` in every byte.
void write_one(const std::string& path, int number) {
  fs::create_directories(fs::path(path).parent_path());
  Pixels pixels{4, 5, 3, Bytes(60, static_cast<uint8_t>(number))};
  const Bytes bytes = png_of(pixels);
  write_file(path, {bytes.begin(), bytes.end()});
}

struct Shop {
  TempDir folder;
  Shop() {
    for (int i = 0; i < 6; ++i) write_one(folder / ("pictures/" + std::to_string(i) + ".png"), 10 * i);
  }
  void table(const std::string& text, const std::string& name = "labels.csv") const {
    write_file(folder / name, text);
  }
  std::shared_ptr<const Dataset> open(const std::string& options,
                                      const std::vector<TensorSpec>& targets = kClass) const {
    const DatasetSpec spec = parse(folder, "train: {images: {" + options + "}}");
    return open_split(spec, *spec.train, kInput, targets);
  }
  std::string error(const std::string& options, const std::vector<TensorSpec>& targets = kClass) const {
    return error_of([&] { open(options, targets); });
  }
};

/// Returns the first byte of each image in the data set.
std::vector<double> firsts(const Dataset& data) {
  std::vector<double> all;
  for (int64_t i = 0; i < data.size(); ++i) all.push_back(read_rows(data, {i}, 0)[0]);
  return all;
}

/// Returns the options of an images reader that reads the images named in a table. `options`: the options of
/// the table.
std::string table(const std::string& options, const std::string& file = "labels.csv") {
  return "directory: pictures, csv: {file: " + file + ", " + options + "}";
}

const std::string kUsual = "path: file, target: kind";
const std::string kOptions = table(kUsual);

}  // namespace

TEST_CASE("a table of paths and class names sorts the classes and keeps the order of rows") {
  const Shop shop;
  shop.table("id,file,kind\n7,3.png,fox\n8,0.png,\"ant, red\"\n9, 5.png ,fox\r\n\n1,1.png,bee\n");
  const auto data = shop.open(kOptions);
  CHECK(data->size() == 4);
  CHECK(firsts(*data) == std::vector<double>{30, 0, 50, 10});
  CHECK(read_all(*data, 1) == std::vector<double>{2, 0, 2, 1});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"ant, red", "bee", "fox"});
  CHECK(data->id_title() == "file");
  CHECK(data->sample_id(2) == "5.png");
  CHECK(data->identity().files.size() == 2);
}

TEST_CASE("numbers in a table are class numbers, or targets of a regression") {
  const Shop shop;
  shop.table("3.png;2;0.5;1\n0.png;0;-1e1;3\n");
  const std::string by_index = "path: 0, delimiter: ;, ";
  CHECK(read_all(*shop.open(table(by_index + "target: 1")), 1) == std::vector<double>{2, 0});
  CHECK(read_all(*shop.open(table(by_index + "target: 2"), kNumber), 1) == std::vector<double>{0.5, -10});
  const auto weighted = shop.open(table(by_index + "target: -2, weight: -1"), kNumber);
  CHECK(read_all(*weighted, 2) == std::vector<double>{1, 3});
  CHECK(contains(shop.error(table(by_index + "target: 2")),
                 "labels.csv:1:9: expected an integer (int32), found '0.5'"));
  CHECK(contains(shop.error(table(kUsual + ", delimiter: ;")),
                 "expected a column named 'file', found the columns '3.png'"));
  // Class names may look like numbers, and their order may differ from the order of the numbers.
  CHECK(read_all(*shop.open(table(by_index + "target: 1") + ", class_names: ['2', '0']"), 1) ==
        std::vector<double>{0, 1});
}

TEST_CASE("class_names gives names to the class numbers in a table") {
  const Shop shop;
  shop.table("file,kind\n3.png,2\n0.png,0\n1.png,1\n");
  const std::string names = kOptions + ", class_names: [fox, ant, bee]";
  const auto data = shop.open(names);
  CHECK(read_all(*data, 1) == std::vector<double>{2, 0, 1});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"fox", "ant", "bee"});
  shop.table("file,kind\n4.png,1\n", "other.csv");
  shop.table("file,kind\n4.png,bee\n", "named.csv");
  DatasetSpec spec = parse(shop.folder, "train: {images: {" + names + "}}\nvalidation: {images: {" +
                                            table(kUsual, "other.csv") + "}}\ntest: {images: {" +
                                            table(kUsual, "named.csv") + "}}\n");
  spec.facts = data->facts();
  CHECK(read_all(*open_split(spec, *spec.validation, kInput, kClass), 1) == std::vector<double>{1});
  CHECK(read_all(*open_split(spec, *spec.test, kInput, kClass), 1) == std::vector<double>{2});
  shop.table("file,kind\n3.png,2\n0.png,3\n");
  CHECK(contains(shop.error(names), "labels.csv:3:7: expected one of"));
  shop.table("file,kind\n3.png,2\n0.png,ant\n");
  CHECK(contains(shop.error(names), "('0', '1', '2'), found 'ant'"));
}

TEST_CASE("missing images of a table are counted in the error") {
  const Shop shop;
  shop.table("file,kind\n1.png,a\n8.png,b\n9.png,b\n");
  CHECK(contains(shop.error(kOptions),
                 "pictures/8.png: expected a file, found nothing; 1 more cannot be found; set 'on_error: "
                 "skip' to leave out images that cannot be read"));
  shop.table("file,kind\n8.png,b\n9.png,b\n");
  CHECK(contains(shop.error(kOptions), "found nothing; 1 more cannot be found"));
  CHECK_FALSE(contains(shop.error(kOptions), "on_error"));
}

TEST_CASE("several targets are given by the names of their outputs") {
  const Shop shop;
  shop.table("file,kind,size\n3.png,b,1.5\n4.png,a,2\n");
  const std::vector<TensorSpec> two{{"what", {}, DType::int32}, {"big", {1}, DType::float32}};
  const auto data = shop.open(table("path: file, targets: {big: size, what: kind}"), two);
  CHECK(read_all(*data, 1) == std::vector<double>{1, 0});
  CHECK(read_all(*data, 2) == std::vector<double>{1.5, 2});
  CHECK(data->facts().source.class_names.at("what") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("paths are relative to the directory or the table's folder, or absolute") {
  const Shop shop;
  write_one(shop.folder / "lists/beside.png", 77);
  shop.table("file,kind\n../pictures/1.png,a\nbeside.png,b\n" + (shop.folder / "pictures/2.png") + ",a\n",
             "lists/labels.csv");
  const auto read = [&](const std::string& more) {
    const DatasetSpec spec =
        parse(shop.folder, "train: {images: {csv: {file: lists/labels.csv, " + kUsual + "}" + more + "}}");
    return firsts(*open_split(spec, *spec.train, kInput, kClass));
  };
  CHECK(read("") == std::vector<double>{10, 77, 20});
  CHECK(read(", directory: pictures") == std::vector<double>{10, 77, 20});
  shop.table("file,kind\n1,a\n2,b\n");
  CHECK(firsts(*shop.open(table(kUsual + ", extension: .png"))) == std::vector<double>{10, 20});
}

TEST_CASE("errors in a table name line and column") {
  const Shop shop;
  shop.table("file,kind\n1.png,a\n\n9.png,b\n");
  CHECK(contains(shop.error(kOptions),
                 "labels.csv:4:1: " + (shop.folder / "pictures/9.png") + ": expected a file, found nothing"));
  shop.table("kind,file\na,1\nb,2\n");
  CHECK(contains(shop.error(kOptions), "labels.csv:2:3: "));
  CHECK(contains(shop.error(kOptions), "1.png exists, so give 'extension: .png'"));
  shop.table("file,kind\n1.png,a\n");
  CHECK(contains(shop.error("csv: {file: labels.csv, " + kUsual + "}"),
                 "set 'directory' to the folder of the images"));
  shop.table("file,kind\n1.png,a\n,b\n");
  CHECK(contains(shop.error(kOptions), "labels.csv:3:1: expected the path of an image, found nothing"));
  shop.table("file,kind\n1.png,a\n2.png,\n");
  CHECK(contains(
      shop.error(kOptions),
      "labels.csv:3:7: expected a value in the column 'kind', found ''; a target must have a value in "
      "every row"));
  shop.table("file,kind\n1.png,a\n2.png,b\n./1.png,a\n");
  CHECK(contains(shop.error(kOptions), "labels.csv:4:1: each image must be listed only once, but "));
  CHECK(contains(shop.error(kOptions), "1.png is also listed in line 2"));
  shop.table("file,kind\n1.png,a\n2.png\n");
  CHECK(contains(shop.error(kOptions), "labels.csv:3: expected 2 values"));
  shop.table("file,kind\n1.png,a\n../labels.csv,b\n");
  CHECK(contains(shop.error(kOptions),
                 "labels.csv: expected a JPEG, PNG or BMP, found a file that is not an image"));
  CHECK(contains(shop.error(table("path: name, target: kind")),
                 "expected a column named 'name', found the columns 'file'"));
  CHECK(contains(shop.error(table("path: file")), "give 'target'"));
}

TEST_CASE("options that exclude each other are an error") {
  const TempDir folder;
  const auto error = [&](const std::string& options) {
    return error_of([&] { parse(folder, "train: {images: {" + options + "}}"); });
  };
  CHECK(
      contains(error("size: [3, 4]"), "give one of 'directory' (a folder of images for each class), 'csv'"));
  CHECK(contains(error("csv: {file: a.csv}"), "missing key 'path' in images' csv"));
  CHECK(contains(error("directory: a, target: kind"), "1:32: error: unknown key 'target' in images"));
  CHECK(contains(error("csv: {file: a.csv, path: b, target: c, targets: {d: e}}"), "give either 'target'"));
}

TEST_CASE("unreadable images are skipped with their targets, weights and names") {
  const Shop shop;
  write_file(shop.folder / "pictures/text.png", "text");
  shop.table("file,kind,w\n1.png,a,1\ntext.png,b,2\n9.png,a,3\n,a,4\n2.png,b,5\n");
  const auto data = shop.open(table(kUsual + ", weight: w") + ", on_error: skip");
  CHECK(firsts(*data) == std::vector<double>{10, 20});
  CHECK(read_all(*data, 1) == std::vector<double>{0, 1});
  CHECK(read_all(*data, 2) == std::vector<double>{1, 5});
  CHECK(data->sample_id(1) == "2.png");
  REQUIRE(data->warnings().size() == 1);
  CHECK(contains(data->warnings()[0], "labels.csv: 3 of 5 files were left out"));
  CHECK(contains(data->warnings()[0], "text.png: expected a JPEG"));
}

TEST_CASE("other tables use the classes of the training table") {
  const Shop shop;
  shop.table("file,kind\n1.png,b\n2.png,a\n3.png,c\n");
  shop.table("kind,file\nc,4.png\nb,0.png\n", "other.csv");
  shop.table("kind,file\nd,4.png\n", "new.csv");
  shop.table("note,file\nx,5.png\ny,5.png\n", "unknown.csv");
  DatasetSpec spec = parse(shop.folder, "train: {images: {" + kOptions + "}}\nvalidation: {images: {" +
                                            table(kUsual, "other.csv") + "}}\ntest: {images: {" +
                                            table(kUsual, "new.csv") + "}}\n");
  spec.facts = open_split(spec, *spec.train, kInput, kClass)->facts();
  CHECK(read_all(*open_split(spec, *spec.validation, kInput, kClass), 1) == std::vector<double>{2, 1});
  CHECK(contains(error_of([&] { open_split(spec, *spec.test, kInput, kClass); }),
                 "new.csv:2:1: expected one of the training file's values in the column 'kind' ('a', 'b', "
                 "'c'), found 'd'"));
  // Data for predictions have no targets. They may name an image more than once.
  const auto data = open_inputs(given(shop.folder / "unknown.csv"), spec, kInput, {});
  CHECK(firsts(*data) == std::vector<double>{50, 50});
  CHECK(data->sample_id(0) == "5.png");
  CHECK(open_inputs(given(shop.folder / "pictures"), spec, kInput, {})->size() == 6);
  // If the table has only the column of paths, a blank line between rows is a row without a path, and thus an
  // error.
  shop.table("file\n\n5.png\n6.png\n", "paths.csv");
  CHECK(contains(error_of([&] { open_inputs(given(shop.folder / "paths.csv"), spec, kInput, {}); }),
                 "paths.csv:2:1: expected the path of an image, found nothing"));
  shop.table("file\n5.png\n4.png\n\n", "paths.csv");
  CHECK(open_inputs(given(shop.folder / "paths.csv"), spec, kInput, {})->size() == 2);
}

TEST_CASE("a table of images can be split by class") {
  const Shop shop;
  std::string text = "file,kind\n";
  for (int i = 0; i < 6; ++i) text += std::to_string(i) + ".png," + (i % 2 ? "odd\n" : "even\n");
  shop.table(text);
  const DatasetSpec spec = parse(shop.folder, "train: {images: {" + kOptions +
                                                  "}}\nvalidation: {split: {of: train, fraction: 0.34, "
                                                  "stratify: true}}\n");
  const auto labels = read_all(*open_split(spec, *spec.train, kInput, kClass), 1);
  CHECK(labels.size() == 4);
  CHECK(std::count(labels.begin(), labels.end(), 1.0) == 2);
}

TEST_CASE("the identity of a data set changes with its images, and its cache is written again") {
  const Shop shop;
  shop.table("file,kind\n1.png,a\n2.png,b\n");
  const auto open = [&] {
    const DatasetSpec spec = parse(shop.folder, "train: {images: {" + kOptions + "}}\ncache: {file: kept}\n");
    return open_split(spec, *spec.train, kInput, kClass);
  };
  const DataIdentity before = open()->identity();
  CHECK(describe_change(before, open()->identity()) == "");
  write_one(shop.folder / "pictures/3.png", 99);  // not listed in the table
  CHECK(describe_change(before, open()->identity()) == "");
  write_one(shop.folder / "pictures/1.png", 98);
  CHECK(contains(describe_change(before, open()->identity()), "named files"));
  CHECK(firsts(*open()) == std::vector<double>{98, 20});
}

}  // namespace dtrain::test
