// safetensors files: element types, and the round trip of written files.
#include "checkpoint/safetensors.h"

#include <cstring>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/files.h"
#include "support/temp_dir.h"

using namespace dtrain;

namespace {

/// Writes a safetensors file to a temporary directory and loads it.
struct TestFile {
  test::TempDir directory;
  std::string path = directory / "a.safetensors";

  SafetensorsFile load(const std::string& header, const std::string& data) const {
    const uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    test::write_file(path, bytes + header + data);
    return SafetensorsFile::load(path);
  }
};

}  // namespace

TEST_CASE("floating point numbers of every width become float32") {
  const TestFile file;
  using namespace std::string_literals;
  const auto one = [&](const std::string& type, const std::string& data) {
    const std::string header = R"({"w":{"dtype":")" + type + R"(","shape":[1],"data_offsets":[0,)" +
                               std::to_string(data.size()) + "]}}";
    return file.load(header, data).arrays.at(0).values;
  };
  CHECK(one("F64", "\0\0\0\0\0\0\xf8\xbf"s)->at(0) == -1.5f);
  CHECK(one("F32", "\0\0\xc0\xbf"s)->at(0) == -1.5f);
  CHECK(one("F16", "\x00\xbe"s)->at(0) == -1.5f);
  CHECK(one("BF16", "\xc0\xbf"s)->at(0) == -1.5f);
  CHECK(!one("I64", "\1\0\0\0\0\0\0\0"s));
  CHECK(!one("BOOL", "\1"s));
}

TEST_CASE("arrays may be empty, and their order in the file may differ from their order in the header") {
  const TestFile file;
  const SafetensorsFile read = file.load(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
      R"("none":{"dtype":"F32","shape":[0,4],"data_offsets":[3,3]}})",
      "abc");
  REQUIRE(read.arrays.size() == 3);
  CHECK(read.arrays[0].name == "b");
  CHECK(read.arrays[2].shape == Shape{0, 4});
}

TEST_CASE("written arrays are read back and begin at a multiple of 8 bytes") {
  const TestFile file;
  const std::vector<float> values = {1, -2, 3.5f, 0, 5, 6};
  const std::vector<int32_t> whole = {7};
  NewFile written(file.path);
  write_safetensors(
      written,
      {{"w/\"quoted\"", {2, 3}, DType::float32, values.data()}, {"n", {1}, DType::int32, whole.data()}},
      {{"key", "väl\nue"}});
  written.finish();
  const SafetensorsFile read = SafetensorsFile::load(file.path);
  REQUIRE(read.arrays.size() == 2);
  CHECK(read.arrays[0].name == "w/\"quoted\"");
  CHECK(read.arrays[0].shape == Shape{2, 3});
  CHECK(*read.arrays[0].values == values);
  CHECK(!read.arrays[1].values);
  CHECK(read.metadata.at("key") == "väl\nue");
  CHECK((std::filesystem::file_size(file.path) - 28) % 8 == 0);
  CHECK(begins_as_safetensors(file.path));
}

TEST_CASE("a changed or truncated file is read or rejected") {
  const TestFile file;
  const std::string header =
      R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  int refused = 0;
  const auto try_it = [&](const std::string& changed, const std::string& data) {
    try {
      file.load(changed, data);
    } catch (const UserError&) {
      ++refused;
    }
  };
  for (size_t i = 0; i < header.size(); ++i)
    for (const char byte : {'0', '9', '"', '{', '-', '\xff'}) {
      std::string changed = header;
      changed[i] = byte;
      try_it(changed, "12345678");
    }
  CHECK(refused > 200);
  refused = 0;
  for (size_t i = 0; i < 8; ++i) try_it(header, std::string(i, 'x'));
  for (size_t i = 0; i < header.size(); ++i) try_it(header.substr(0, i), "12345678");
  CHECK(refused == 8 + static_cast<int>(header.size()));
  refused = 0;
  try_it(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}})", "");
  CHECK(refused == 1);
}

TEST_CASE("a missing file is an error that names it") {
  CHECK_THROWS_WITH_AS(SafetensorsFile::load("/nowhere/a.safetensors"),
                       doctest::Contains("/nowhere/a.safetensors: cannot be read"), UserError);
}
