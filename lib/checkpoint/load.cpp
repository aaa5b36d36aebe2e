#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/reader/object.h"

namespace dtrain {

namespace {
/// Reads an untrusted HDF5 file with a reader that supports only the objects that dtrain writes. libhdf5 is
/// not used, because a malicious file can crash it. The checksum does not help, because it does not prove who
/// wrote the file.
class ImageReader {
 public:
  ImageReader(std::span<const std::byte> image, int format)
      : image_(image), format_(format), root_(root_address(image_)) {}

  CheckpointContent read() {
    CheckpointContent content;
    read_model(content);
    content.state = Json::parse(read_bytes(kState));
    content.config_yaml = read_bytes(kConfig);
    if (find(kHistory)) content.history = read_bytes(kHistory);
    if (find(kTables)) content.tables = read_bytes(kTables);
    for (const std::string& slot : read_names(open_group(kOptimizer), kOptimizer, kSlotNames))
      content.slots.push_back({slot, read_arrays(fmt::format("{}/{}", kOptimizer, slot), "")});
    return content;
  }

 private:
  void read_model(CheckpointContent& content) {
    content.model_config = read_json(kModelConfig);
    content.training_config = read_json(kTrainingConfig);
    const std::vector<std::string> keras = read_names(open_group(kWeights), kWeights, kLayerNames);
    const std::vector<std::string> own =
        format_ == 1 ? keras : read_names(open_group(kOwn), kOwn, kLayerNames);
    if (own.size() != keras.size())
      refuse(kOwn, fmt::format("names for {} layers", keras.size()), fmt::format("{}", own.size()));
    for (size_t i = 0; i < own.size(); ++i)
      content.layers.push_back(
          {own[i], read_arrays(fmt::format("{}/{}", kWeights, keras[i]), keras[i] + "/"), keras[i]});
  }

  /// Returns the JSON text in an attribute of the root group; null if the attribute does not exist.
  Json read_json(const std::string& name) {
    const auto text = open_group("/").strings(name);
    if (!text) return {};
    return Json::parse(text->empty() ? std::string() : text->front());
  }

  /// Returns the address of the object at this path, or nullopt if there is no such object.
  std::optional<uint64_t> find(std::string_view path) {
    uint64_t address = root_;
    for (size_t begin = 0, end; begin < path.size(); begin = end + 1) {
      end = std::min(path.find('/', begin), path.size());
      const std::string_view name = path.substr(begin, end - begin);
      if (name.empty()) continue;  // the path begins with a slash, so the first name is empty
      const auto found = group_at(address, path.substr(0, begin)).find(name);
      if (!found) return std::nullopt;
      address = *found;
    }
    return address;
  }

  uint64_t address_of(std::string_view path) {
    if (const auto found = find(path)) return *found;
    throw UserError(fmt::format("could not open {}: the file contains no such object", path));
  }

  const Group& open_group(std::string_view path) { return group_at(address_of(path), path); }

  const Group& group_at(uint64_t address, std::string_view path) {
    const auto known = groups_.find(address);
    if (known != groups_.end()) return known->second;
    return groups_.try_emplace(address, image_, address, std::string(path)).first->second;
  }

  std::vector<ArrayRef> read_arrays(const std::string& path, const std::string& prefix) {
    std::vector<ArrayRef> arrays;
    for (const std::string& name : read_names(open_group(path), path, kWeightNames)) {
      if (!name.starts_with(prefix) || !name.ends_with(kSuffix) ||
          name.size() < prefix.size() + std::size(kSuffix))
        refuse(path, fmt::format("a weight's name such as '{}kernel{}'", prefix, kSuffix),
               fmt::format("'{}'", name));
      arrays.push_back(read_array(path + "/" + name));
      arrays.back().name = name.substr(prefix.size(), name.size() - prefix.size() - (std::size(kSuffix) - 1));
    }
    return arrays;
  }

  std::string read_bytes(const std::string& path) {
    const ArrayRef array = read_array(path);
    if (array.dtype != DType::uint8) refuse(path, "uint8", name_of(array.dtype));
    return std::string(static_cast<const char*>(array.data), array.bytes());
  }

  /// Returns a reference to the array, whose data remain in the image.
  ArrayRef read_array(const std::string& path) {
    const ContiguousArray dataset = read_dataset(image_, address_of(path), path, kAlignment);
    return {path, dataset.shape, dataset.dtype, dataset.data.data()};
  }

  /// Reads a list of names. The list is stored in one attribute or, if it is large, split into several
  /// attributes.
  std::vector<std::string> read_names(const Group& group, const std::string& path, const std::string& name) {
    if (auto whole = group.strings(name)) return *whole;
    std::vector<std::string> names;
    for (size_t part = 0;; ++part) {
      const auto block = group.strings(name + std::to_string(part));
      if (!block && part == 0) refuse(path, "the attribute " + name, "none");
      if (!block) return names;
      names.insert(names.end(), block->begin(), block->end());
    }
  }

  Image image_;
  int format_;
  uint64_t root_;
  std::unordered_map<uint64_t, Group> groups_;  ///< groups that were already opened, by address
};

CheckpointContent read_image(const std::string& path, std::span<const std::byte> image, int format) {
  try {
    return ImageReader(image, format).read();
  } catch (const Error& error) {
    throw UserError(fmt::format("{}: {}", path, error.what()));
  }
}

const ArrayRef* find(const std::unordered_map<std::string, const ArrayRef*>& arrays,
                     const std::string& name) {
  const auto found = arrays.find(name);
  return found == arrays.end() ? nullptr : found->second;
}
}  // namespace

Checkpoint Checkpoint::load(const std::string& path) {
  const Bytes file = read_file(path);
  return from_bytes(path, file.data, file.size);
}

Checkpoint Checkpoint::from_bytes(const std::string& path, std::shared_ptr<const std::byte[]> bytes,
                                  size_t size) {
  const std::span<const std::byte> file(bytes.get(), size);
  const int format = verify_header(path, file);
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  checkpoint.file_bytes_ = size;
  checkpoint.content_ = read_image(path, file.subspan(kHeaderBytes), format);
  checkpoint.file_ = std::move(bytes);
  for (const LayerWeights& layer : checkpoint.content_.layers)
    for (const ArrayRef& array : layer.weights)
      checkpoint.weights_.emplace(layer.layer + "/" + array.name, &array);
  for (const OptimizerSlot& slot : checkpoint.content_.slots)
    for (const ArrayRef& array : slot.arrays) checkpoint.slots_.emplace(slot.name + "/" + array.name, &array);
  return checkpoint;
}

const ArrayRef* Checkpoint::weight(std::string_view name) const {
  return find(weights_, std::string(name));
}

const ArrayRef* Checkpoint::slot(std::string_view slot, std::string_view weight) const {
  return find(slots_, fmt::format("{}/{}", slot, weight));
}

}  // namespace dtrain
