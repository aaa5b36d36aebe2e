// Checkpoints of format 1, which older versions of dtrain wrote, can still be loaded. The example is
// tests/checkpoint/format-1.h5.
#include <map>

#include <doctest/doctest.h>

#include "base/error.h"
#include "checkpoint/hash.h"
#include "sample.h"
#include "support/source_dir.h"

namespace dtrain {
using namespace test;

namespace {
/// Checksums by name, from `dtrain inspect` of the program that wrote the file.
const std::map<std::string, uint64_t> kWeights{
    {"residual/skip/kernel", 0xbc610dbe48f94260},
    {"residual/skip/bias", 0x1e391dd35a99b452},
    {"residual/first/kernel", 0xda9424624dd48e6c},
    {"residual/first/bias", 0x6327fec9da10f0c6},
    {"residual/second/gamma", 0x2651e7bc421fbbbe},
    {"residual/second/beta", 0x1e391dd35a99b452},
    {"residual/second/moving_mean", 0xcf30e2a4b986ceac},
    {"residual/second/moving_variance", 0x79b61b3ce714fb2a},
    {"residual_1/skip/kernel", 0x212b2218048c915c},
    {"residual_1/skip/bias", 0xcc6c2f0c28bb36eb},
    {"residual_1/first/kernel", 0xc5f441ff442fa76d},
    {"residual_1/first/bias", 0xba497a2a86cb243f},
    {"residual_1/second/gamma", 0xe2947ecbffbd2229},
    {"residual_1/second/beta", 0xcc6c2f0c28bb36eb},
    {"residual_1/second/moving_mean", 0x286985e8b61056bf},
    {"residual_1/second/moving_variance", 0xac2792cf3a25274c},
    {"dense/kernel", 0xe7e80e7b4a3dcdb6},
    {"dense/bias", 0x289c5f6451fe1409},
};

uint64_t checksum_of(const ArrayRef& array) {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(array.data), array.bytes());
  return checksum({&bytes, 1});
}
}  // namespace

TEST_CASE("a checkpoint of format 1 is read completely") {
  const Checkpoint old = Checkpoint::load(source_dir() + "/tests/checkpoint/format-1.h5");
  size_t weights = 0;
  for (const LayerWeights& layer : old.content().layers) weights += layer.weights.size();
  CHECK(weights == kWeights.size());
  for (const auto& [key, expected] : kWeights) {
    const std::string& name = key;
    CAPTURE(name);
    const ArrayRef* found = old.weight(name);
    REQUIRE(found != nullptr);
    CHECK(checksum_of(*found) == expected);
  }
  REQUIRE(old.content().slots.size() == 2);
  const ArrayRef* velocity = old.slot("velocity", "residual/skip/bias");
  REQUIRE(velocity != nullptr);
  CHECK(checksum_of(*velocity) == 0x257daa981d5ebb18);
  CHECK(old.slot("velocity", "dense/bias") == nullptr);  // the bias was frozen
  CHECK(old.content().state.at("step").as_int() == 5);
  CHECK(old.content().training_config.is_null());
  CHECK(old.content().config_yaml.find("residual_1/second") != std::string::npos);
}

TEST_CASE("a checkpoint of format 1 has the same bits after it is saved again") {
  const TempDir directory;
  const Checkpoint old = Checkpoint::load(source_dir() + "/tests/checkpoint/format-1.h5");
  save_checkpoint(directory / "new.h5", old.content());
  CHECK(read_file(directory / "new.h5").find("dtrain checkpoint\nformat 2\n") == 0);
  const Checkpoint again = Checkpoint::load(directory / "new.h5");
  for (const auto& [name, expected] : kWeights) {
    const ArrayRef* found = again.weight(name);
    REQUIRE(found != nullptr);
    CHECK(checksum_of(*found) == expected);
  }
  CHECK(again.content().state.dump() == old.content().state.dump());
}
}  // namespace dtrain
