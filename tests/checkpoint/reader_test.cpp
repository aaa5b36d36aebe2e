// dtrain's own checkpoint reader finds all data that libhdf5 wrote, in each of HDF5's storage layouts, and is
// safe against malicious files.
#include <algorithm>
#include <chrono>
#include <random>
#include <span>

#include <doctest/doctest.h>

#include "base/error.h"
#include "checkpoint/layout.h"
#include "sample.h"

namespace dtrain {
using namespace test;

namespace {

/// Content with many layers. Each layer has one weight with distinct values, and each weight has one slot.
struct Many {
  std::vector<float> values;
  CheckpointContent content;

  explicit Many(size_t count, size_t name_bytes = 0) : values(count) {
    content.slots = {{"m", {}}};
    for (size_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(i);
      std::string name = "layer_" + std::to_string(i);
      if (name.size() < name_bytes) name.resize(name_bytes, 'x');
      content.layers.push_back({name, {{"kernel", {1}, DType::float32, &values[i]}}});
      content.slots[0].arrays.push_back({name + "/kernel", {1}, DType::float32, &values[i]});
    }
    content.state = Json::object().set("step", 1);
  }
};

/// Returns the file's bytes after the header.
std::string image_of(const CheckpointContent& content) {
  const TempDir directory;
  save_checkpoint(directory / "a.h5", content);
  return read_file(directory / "a.h5").substr(kHeaderBytes);
}

/// Prepends a correct header to the image and loads the file. Returns the error message, or "loaded". Any
/// exception other than UserError fails the test.
std::string outcome_of(const TempDir& directory, const std::string& image) {
  write_file(directory / "b.h5", make_header(std::vector{std::as_bytes(std::span(image))}) + image);
  try {
    Checkpoint::load(directory / "b.h5");
  } catch (const UserError& error) {
    return error.what();
  }
  return "loaded";
}

/// Returns the offsets of HDF5's signatures and of the bytes shortly after them. Changes at these offsets are
/// likely to have an effect.
std::vector<size_t> metadata_of(const std::string& image) {
  std::vector<size_t> places;
  for (const char* signature : {"\x89HDF", "OHDR", "OCHK", "FRHP", "FHDB", "FHIB", "BTHD", "BTLF", "BTIN"})
    for (size_t at = image.find(signature); at != std::string::npos; at = image.find(signature, at + 1))
      for (size_t i = at; i < std::min(at + 200, image.size()); ++i) places.push_back(i);
  return places;
}

}  // namespace

TEST_CASE("files with few and with very many layers are read back") {
  // HDF5 stores up to eight layers in the object header. It stores more layers in a heap with an index; the
  // numbers of blocks and levels grow with the number of layers.
  for (const size_t count : {1, 8, 9, 10, 100, 500, 2000}) {
    CAPTURE(count);
    const TempDir directory;
    const Many many(count, count % 1000 == 0 ? 200 : 0);
    save_checkpoint(directory / "a.h5", many.content);
    const Checkpoint loaded = Checkpoint::load(directory / "a.h5");
    REQUIRE(loaded.content().layers.size() == count);
    size_t same_values = 0;
    for (size_t i = 0; i < count; ++i) {
      const ArrayRef* weight = loaded.weight(many.content.layers[i].layer + "/kernel");
      const ArrayRef* slot = loaded.slot("m", many.content.slots[0].arrays[i].name);
      if (weight && slot && same(*weight, many.content.layers[i].weights[0]) &&
          same(*slot, many.content.slots[0].arrays[i]))
        ++same_values;
    }
    CHECK(same_values == count);
  }
}

TEST_CASE("an attribute of any size is read back") {
  for (const size_t size : {0, 1, 1000, 60'000, 65'000, 65'535, 66'000, 1'000'000}) {
    CAPTURE(size);
    const TempDir directory;
    CheckpointContent content;
    content.model_config = std::string(size, 'c');
    save_checkpoint(directory / "a.h5", content);
    CHECK(Checkpoint::load(directory / "a.h5").content().model_config.dump() == content.model_config.dump());
  }
}

TEST_CASE("names with arbitrary bytes are read back") {
  const TempDir directory;
  float value = 1;
  CheckpointContent content;
  content.layers = {{"d\xe9", {{"\xff", {}, DType::float32, &value}}}};
  save_checkpoint(directory / "a.h5", content);
  const Checkpoint loaded = Checkpoint::load(directory / "a.h5");
  CHECK(loaded.weight("d\xe9/\xff") != nullptr);
}

TEST_CASE("a randomly changed checkpoint with a valid checksum is read or rejected quickly") {
  std::mt19937_64 random(1);
  Sample sample;
  Many few(30);
  const Many many(400);
  few.content.model_config = std::string(70'000, 'c');  // too long for an object header
  for (const CheckpointContent* content :
       std::initializer_list<const CheckpointContent*>{&sample.content, &few.content, &many.content}) {
    const TempDir directory;
    const std::string image = image_of(*content);
    REQUIRE(outcome_of(directory, image) == "loaded");
    const std::vector<size_t> places = metadata_of(image);
    const uint64_t values[] = {
        0, 1, 0xff, 0xffff, ~uint64_t{0}, image.size(), image.size() - 1, uint64_t{1} << 63};
    size_t refused = 0;
    for (int i = 0; i < 3000; ++i) {
      std::string changed = image;
      for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
        const size_t at = places[random() % places.size()];
        if (random() % 2) {
          changed[at] = static_cast<char>(random());
        } else {
          const uint64_t value =
              random() % 2 ? values[random() % std::size(values)] : places[random() % places.size()];
          std::memcpy(changed.data() + at, &value,
                      std::min<size_t>(size_t{1} << random() % 4, changed.size() - at));
        }
      }
      const auto start = std::chrono::steady_clock::now();
      if (outcome_of(directory, changed) != "loaded") ++refused;
      CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    }
    CHECK(refused > 1000);
  }
}

TEST_CASE("a file truncated anywhere is an error even if its checksum is valid") {
  const TempDir directory;
  const std::string image = image_of(Sample().content);
  for (size_t size = 0; size < image.size(); size += 7)
    CHECK(outcome_of(directory, image.substr(0, size)) != "loaded");
}

TEST_CASE("a group that contains itself is an error") {
  const TempDir directory;
  std::string image = image_of(Many(2).content);
  // Changes the links of all layers to point to the group that contains the layers.
  const size_t header = image.find("OHDR", image.find("OHDR") + 1);
  REQUIRE(header != std::string::npos);
  size_t changed = 0;
  for (size_t at = image.find("layer_0"); at != std::string::npos; at = image.find("layer_0", at + 1)) {
    const uint64_t address = header;
    if (at + 15 > image.size()) break;
    std::memcpy(image.data() + at + 7, &address, sizeof address);
    ++changed;
  }
  CHECK(changed > 0);
  CHECK(outcome_of(directory, image) != "loaded");
}

}  // namespace dtrain
