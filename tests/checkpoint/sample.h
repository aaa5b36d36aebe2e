// Shared code of the checkpoint tests: small content with every kind of array.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "support/files.h"
#include "support/temp_dir.h"

namespace dtrain::test {

/// Owns the arrays that `content` points to.
struct Sample {
  std::vector<float> kernel{
      1.5f, -0.0f, std::bit_cast<float>(0x7fc12345u), std::bit_cast<float>(0xffa00001u), 1e-45f, 3.4e38f};
  std::vector<float> bias{0.1f, 0.2f, 0.3f};
  std::vector<int32_t> counts{-2147483647 - 1, 7};
  std::vector<uint8_t> bytes{0, 255, 10};
  float scale = 0.25f;
  CheckpointContent content;

  Sample() {
    content.layers = {
        {"conv",
         {{"kernel", {2, 3}, DType::float32, kernel.data()}, {"bias", {3}, DType::float32, bias.data()}}},
        {"flatten", {}},
        {"block/0/odd",
         {{"counts", {1, 2}, DType::int32, counts.data()},
          {"bytes", {3}, DType::uint8, bytes.data()},
          {"scale", {}, DType::float32, &scale},
          {"nothing", {4, 0}, DType::float32, nullptr}},
         "block.0.odd"},
    };
    content.model_config = Json::object().set("class_name", "Functional").set("config", Json::object());
    content.training_config = Json::object().set("loss", "mean_squared_error");
    content.slots = {{"m", {{"conv/kernel", {2, 3}, DType::float32, kernel.data()}}},
                     {"v", {{"conv/bias", {3}, DType::float32, bias.data()}}},
                     {"empty", {}}};
    content.state = Json::object().set("step", int64_t{782}).set("loss", 0.1 + 0.2).set("third", 1.0 / 3);
    content.history = "{\"epoch\": 1, \"step\": 782}\n";
    content.tables = "{\"epoch\": 1, \"step\": 782, \"matrix\": [[1]]}\n";
    content.config_yaml =
        "name: sample\n# gr\xc3\xbc\xc3\x9f"
        "e\n";
  }
};

inline bool same(const ArrayRef& a, const ArrayRef& b) {
  return a.name == b.name && a.shape == b.shape && a.dtype == b.dtype &&
         (a.bytes() == 0 || std::memcmp(a.data, b.data, a.bytes()) == 0);
}

}  // namespace dtrain::test
