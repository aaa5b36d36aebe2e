// Exports a checkpoint's weights for programs without HDF5.
#include <cstdio>

#include "base/error.h"
#include "bench.h"
#include "checkpoint/checkpoint.h"

namespace dtrain::bench {
namespace {

Json shape_of(const ArrayRef& array) {
  Json shape = Json::array();
  for (size_t axis = 0; axis < array.shape.rank(); ++axis) shape.push(array.shape[axis]);
  return shape;
}

}  // namespace

Json export_weights(const std::string& checkpoint, const std::string& file) {
  const Checkpoint loaded = Checkpoint::load(checkpoint);
  const auto close = [](std::FILE* open) { std::fclose(open); };
  const std::unique_ptr<std::FILE, decltype(close)> out(std::fopen(file.c_str(), "wb"), close);
  if (!out) throw UserError(file + ": cannot be written");
  Json layers = Json::array();
  for (const LayerWeights& layer : loaded.content().layers) {
    if (layer.weights.empty()) continue;
    Json arrays = Json::array();
    for (const ArrayRef& array : layer.weights) {
      if (std::fwrite(array.data, 1, array.bytes(), out.get()) != array.bytes())
        throw Error(file + ": writing failed");
      arrays.push(Json::object().set("name", array.name).set("shape", shape_of(array)));
    }
    layers.push(Json::object().set("name", layer.layer).set("weights", arrays));
  }
  if (std::fflush(out.get()) != 0) throw Error(file + ": writing failed");
  return Json::object().set("layers", layers);
}

}  // namespace dtrain::bench
