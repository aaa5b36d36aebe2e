#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file.h"
#include "checkpoint/hdf5_image.h"
#include "checkpoint/layout.h"
#include "checkpoint/sparse_file.h"

namespace dtrain {

namespace {
/// Writes a checkpoint's HDF5 file.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(SparseFile& target) : image_(target) {}

  /// Writes `content`. `state` is content.state as text. Both must outlive the target, which refers to their
  /// memory.
  void write(const CheckpointContent& content, const std::string& state) {
    write_model(content);
    write_own(content, state);
    image_.close();
  }

 private:
  void write_model(const CheckpointContent& content) {
    const Hdf5Handle root(H5Gopen2(image_.file(), "/", H5P_DEFAULT), "open /");
    write_versions(root);
    if (!content.model_config.is_null()) image_.write_text(root, kModelConfig, content.model_config.dump());
    if (!content.training_config.is_null())
      image_.write_text(root, kTrainingConfig, content.training_config.dump());
    const Hdf5Handle group = image_.make_group(kWeights);
    write_versions(group);
    std::vector<std::string> names;
    for (const LayerWeights& layer : content.layers)
      names.push_back(layer.keras_name.empty() ? layer.layer : layer.keras_name);
    image_.write_names(group, kLayerNames, names);
    for (size_t i = 0; i < names.size(); ++i)
      write_arrays(fmt::format("{}/{}", kWeights, names[i]), names[i] + "/", content.layers[i].weights);
  }

  void write_own(const CheckpointContent& content, const std::string& state) {
    const Hdf5Handle own = image_.make_group(kOwn);
    image_.write_text(own, "format", fmt::format("{}", kFormat));
    std::vector<std::string> layers;
    for (const LayerWeights& layer : content.layers) layers.push_back(layer.layer);
    image_.write_names(own, kLayerNames, layers);
    image_.write_bytes(kState, state);
    image_.write_bytes(kHistory, content.history);
    if (!content.tables.empty()) image_.write_bytes(kTables, content.tables);
    image_.write_bytes(kConfig, content.config_yaml);
    const Hdf5Handle optimizer = image_.make_group(kOptimizer);
    std::vector<std::string> names;
    for (const OptimizerSlot& slot : content.slots) names.push_back(slot.name);
    image_.write_names(optimizer, kSlotNames, names);
    for (const OptimizerSlot& slot : content.slots)
      write_arrays(fmt::format("{}/{}", kOptimizer, slot.name), "", slot.arrays);
  }

  /// Writes a version number of Keras 2, because the file has the names and paths of Keras 2.
  void write_versions(hid_t object) {
    image_.write_text(object, "keras_version", "2.15.0");
    image_.write_text(object, "backend", "tensorflow");
  }

  void write_arrays(const std::string& path, const std::string& prefix, const std::vector<ArrayRef>& arrays) {
    const Hdf5Handle group = image_.make_group(path);
    std::vector<std::string> names;
    for (const ArrayRef& array : arrays) names.push_back(prefix + array.name + kSuffix);
    image_.write_names(group, kWeightNames, names);
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::string where = path + "/" + names[i];
      image_.make_group(where.substr(0, where.rfind('/')));
      image_.write_array(where, arrays[i]);
    }
  }

  Hdf5Image image_;
};

}  // namespace

void save_checkpoint(const Location& location, const CheckpointContent& content) {
  const std::string state = content.state.dump();
  SparseFile file;
  try {
    CheckpointWriter(file).write(content, state);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", location.shown(), error.what()));
  }
  std::vector<std::span<const std::byte>> parts = file.parts();
  const std::string header = make_header(parts);
  parts.insert(parts.begin(), std::as_bytes(std::span(header)));
  write_file(location, parts);
}

}  // namespace dtrain
