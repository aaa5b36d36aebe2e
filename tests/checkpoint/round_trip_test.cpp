// Saved content is restored bit by bit, and the file depends only on the content.
#include <doctest/doctest.h>

#include "base/error.h"
#include "sample.h"

namespace dtrain {
using namespace test;

TEST_CASE("a saved checkpoint is loaded bit for bit") {
  const TempDir directory;
  const Sample sample;
  const CheckpointContent& saved = sample.content;
  save_checkpoint(directory / "ckpt-00000782.h5", saved);
  const Checkpoint loaded = Checkpoint::load(directory / "ckpt-00000782.h5");

  const CheckpointContent& content = loaded.content();
  REQUIRE(content.layers.size() == saved.layers.size());
  for (size_t i = 0; i < saved.layers.size(); ++i) {
    CHECK(content.layers[i].layer == saved.layers[i].layer);
    const std::string& keras = saved.layers[i].keras_name;
    CHECK(content.layers[i].keras_name == (keras.empty() ? saved.layers[i].layer : keras));
    REQUIRE(content.layers[i].weights.size() == saved.layers[i].weights.size());
    for (const ArrayRef& array : saved.layers[i].weights) {
      CAPTURE(array.name);
      const ArrayRef* found = loaded.weight(saved.layers[i].layer + "/" + array.name);
      REQUIRE(found != nullptr);
      CHECK(same(*found, array));
    }
  }
  REQUIRE(content.slots.size() == saved.slots.size());
  for (const OptimizerSlot& slot : saved.slots)
    for (const ArrayRef& array : slot.arrays) {
      const ArrayRef* found = loaded.slot(slot.name, array.name);
      REQUIRE(found != nullptr);
      CHECK(same(*found, array));
    }
  CHECK(loaded.weight("conv/gamma") == nullptr);
  CHECK(loaded.slot("v", "conv/kernel") == nullptr);
  CHECK(content.state.dump() == saved.state.dump());
  CHECK(content.state.find("loss")->as_double() == 0.1 + 0.2);
  CHECK(content.model_config.dump() == saved.model_config.dump());
  CHECK(content.training_config.dump() == saved.training_config.dump());
  CHECK(content.config_yaml == saved.config_yaml);
  CHECK(content.history == saved.history);
  CHECK(content.tables == saved.tables);
  CHECK(loaded.file_bytes() == std::filesystem::file_size(loaded.path()));
}

TEST_CASE("a checkpoint may be empty") {
  const TempDir directory;
  save_checkpoint(directory / "a.h5", {});
  const Checkpoint loaded = Checkpoint::load(directory / "a.h5");
  CHECK(loaded.content().layers.empty());
  CHECK(loaded.content().state.is_null());
  CHECK(loaded.content().config_yaml.empty());
}

TEST_CASE("saving and loading ten times gives the same bytes") {
  const TempDir directory;
  const Sample sample;
  save_checkpoint(directory / "a.h5", sample.content);
  const std::string first = read_file(directory / "a.h5");
  for (int i = 0; i < 10; ++i) {
    const Checkpoint loaded = Checkpoint::load(directory / "a.h5");
    save_checkpoint(directory / "a.h5", loaded.content());
    CHECK(read_file(directory / "a.h5") == first);
  }
}

TEST_CASE("arrays larger than the file image's increment are saved and loaded") {
  const TempDir directory;
  std::vector<float> large(9'000'000), small{1, 2};
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i);
  CheckpointContent content;
  content.layers = {{"a", {{"w", {3000, 3000}, DType::float32, large.data()}}},
                    {"b", {{"w", {2}, DType::float32, small.data()}}}};
  save_checkpoint(directory / "a.h5", content);
  const Checkpoint loaded = Checkpoint::load(directory / "a.h5");
  CHECK(same(*loaded.weight("a/w"), content.layers[0].weights[0]));
  CHECK(same(*loaded.weight("b/w"), content.layers[1].weights[0]));
}

TEST_CASE("names and a configuration of more than 64 KiB are saved and loaded") {
  const TempDir directory;
  CheckpointContent content;
  float value = 1;
  for (int i = 0; i < 1500; ++i) {
    const std::string number = std::to_string(i);
    content.layers.push_back({number + std::string(100 - number.size(), 'x'), {}});
    content.slots.resize(1);
    content.slots[0].arrays.push_back({content.layers.back().layer + "/w", {1}, DType::float32, &value});
  }
  content.slots[0].name = "m";
  content.model_config = Json::object().set("class_name", std::string(200'000, 'c'));
  save_checkpoint(directory / "a.h5", content);
  const Checkpoint loaded = Checkpoint::load(directory / "a.h5");
  REQUIRE(loaded.content().layers.size() == 1500);
  for (size_t i = 0; i < 1500; ++i) CHECK(loaded.content().layers[i].layer == content.layers[i].layer);
  CHECK(loaded.content().slots[0].arrays.size() == 1500);
  CHECK(loaded.content().model_config.dump() == content.model_config.dump());
}

TEST_CASE("two layers of the same name cannot be saved, and no file is left") {
  const TempDir directory;
  CheckpointContent content;
  content.layers = {{"a", {}}, {"a", {}}};
  CHECK_THROWS_AS(save_checkpoint(directory / "a.h5", content), Error);
  CHECK(directory.entries() == 0);
}
}  // namespace dtrain
