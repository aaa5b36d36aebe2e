#include "interop/keras/files/listing.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/names_attribute.h"
#include "hdf5/hdf5_storage.h"
#include "interop/keras/files/json.h"
#include "interop/keras/files/open_file.h"
#include "interop/keras/files/weight_names.h"
#include "interop/keras/files/weights.h"

namespace dtrain {

namespace {

std::string dtype_of(hid_t dataset) {
  const Hdf5Handle type(H5Dget_type(dataset), "read a type");
  const size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return fmt::format("float{}", bits);
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_ENUM:
      return "bool";
    case H5T_STRING:
      return "string";
    default:
      return "other";
  }
}

KerasArray array_of(hid_t dataset, const std::string& name) {
  const Hdf5Handle space(H5Dget_space(dataset), "read the shape of " + name);
  const int rank = checked(H5Sget_simple_extent_ndims(space), "read the shape of " + name);
  std::vector<hsize_t> extents(static_cast<size_t>(rank));
  checked(H5Sget_simple_extent_dims(space, extents.data(), nullptr), "read the shape of " + name);
  return {name, Shape(std::vector<int64_t>(extents.begin(), extents.end())), dtype_of(dataset)};
}

/// Lists the arrays below a group with their relative paths, sorted by name.
class ArrayLister {
 public:
  explicit ArrayLister(std::string path) : path_(std::move(path)) {}

  std::vector<KerasArray> list(hid_t group) {
    visit(group, "", 0);
    return std::move(arrays_);
  }

 private:
  // Limits for malicious files, in which hard links may form cycles or lead to the same group along a huge
  // number of paths.
  static constexpr int kMostDepth = 32;
  static constexpr int64_t kMostLinks = 1'000'000;

  void visit(hid_t group, const std::string& prefix, int depth) {
    H5G_info_t info{};
    checked(H5Gget_info(group, &info), "list the arrays of " + path_);
    links_ += static_cast<int64_t>(std::min<hsize_t>(info.nlinks, kMostLinks));
    if (depth > kMostDepth || links_ > kMostLinks)
      throw UserError(fmt::format(
          "{}: expected at most {} groups and arrays and at most {} levels of groups, but the file has more",
          path_, kMostLinks, kMostDepth));
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      const std::string name = name_of_link(group, i);
      reject_links(group, path_, name);
      const Hdf5Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), "open " + prefix + name);
      const H5I_type_t type = H5Iget_type(object);
      if (type == H5I_DATASET) arrays_.push_back(array_of(object, prefix + name));
      if (type == H5I_GROUP) visit(object, prefix + name + "/", depth + 1);
    }
  }

  std::string name_of_link(hid_t group, hsize_t index) const {
    const auto get = [&](char* into, size_t size) {
      return checked(
          H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, into, size, H5P_DEFAULT),
          "list the arrays of " + path_);
    };
    std::string name(static_cast<size_t>(get(nullptr, 0)), '\0');
    get(name.data(), name.size() + 1);
    return name;
  }

  std::string path_;
  int64_t links_ = 0;
  std::vector<KerasArray> arrays_;
};

/// Maps the paths of weights in the file to the names of the weights. For example, both
/// "dense/dense/kernel:0" and "layers/dense/vars/0" are paths of the weight "dense/kernel". Returns an empty
/// map if the names cannot be found because the arrays or the model in the file are not as expected.
std::map<std::string, std::string> names_by_path(const OpenKerasFile& file) {
  std::map<std::string, std::string> names;
  try {
    const std::vector<KerasWeightGroup> groups = read_keras_shapes(file).groups;
    const auto all = names_of_weights(groups, file.layout(), file.facts().model_config);
    for (size_t k = 0; k < groups.size(); ++k) {
      std::string folder = groups[k].name.empty() ? "" : groups[k].name + "/";
      if (file.layout() == KerasLayout::vars) folder += "vars/";
      for (size_t i = 0; i < groups[k].weights.size(); ++i)
        names[folder + groups[k].weights[i].name] = all[k][i];
    }
  } catch (const UserError&) {
    names.clear();
  }
  return names;
}

/// Reads one open file.
class KerasFileReader {
 public:
  explicit KerasFileReader(const OpenKerasFile& file)
      : opened_(file), file_(file.file()), path_(file.path()), heap_(file.heap()) {}

  KerasContent read() {
    names_ = names_by_path(opened_);
    KerasContent result;
    result.path = path_;
    result.layout = opened_.layout();
    result.keras_version = opened_.facts().keras_version;
    result.backend = opened_.facts().backend;
    result.is_compiled = !opened_.facts().training_config.is_null();
    if (!opened_.facts().model_config.is_null()) take_model(opened_.facts().model_config, result);
    if (result.layout == KerasLayout::layers) {
      const Hdf5Handle root = opened_.open_weights();
      for (const std::string& layer : NamesAttribute(root, path_, heap_).read("layer_names"))
        entry(layer, result).arrays = arrays_of_layer(root, layer);
      if (H5Lexists(file_, "optimizer_weights", H5P_DEFAULT) > 0) {
        reject_links(file_, path_, "optimizer_weights");
        const Hdf5Handle optimizer(H5Gopen2(file_, "optimizer_weights", H5P_DEFAULT), "read " + path_);
        result.optimizer = ArrayLister(path_).list(optimizer);
      }
    } else {
      take_vars(result);
    }
    return result;
  }

 private:
  /// Adds the names and classes of the layers from the model's configuration.
  static void take_model(const Json& model, KerasContent& result) {
    result.model_class = text_at(model, "class_name");
    const Json* config = model.is_object() ? model.find("config") : nullptr;
    if (!config) return;
    result.model_name = text_at(*config, "name");
    // In early versions of Keras, the configuration of a Sequential is its list of layers.
    const Json* layers = config->is_object() ? config->find("layers") : config;
    if (!layers || !layers->is_array()) return;
    for (const Json& layer : layers->items()) {
      const Json* options = layer.is_object() ? layer.find("config") : nullptr;
      std::string name = text_at(layer, "name");
      if (name.empty() && options) name = text_at(*options, "name");
      if (!name.empty()) entry(name, result).kind = text_at(layer, "class_name");
    }
  }

  /// Returns the entry with this name. Adds an entry if there is none.
  static KerasLayerEntry& entry(const std::string& name, KerasContent& result) {
    const auto found = std::find_if(result.layers.begin(), result.layers.end(),
                                    [&](const KerasLayerEntry& layer) { return layer.name == name; });
    if (found != result.layers.end()) return *found;
    return result.layers.emplace_back(KerasLayerEntry{name, "", {}});
  }

  std::string name_of_weight(const std::string& path) const {
    const auto found = names_.find(path);
    return found == names_.end() ? "" : found->second;
  }

  std::vector<KerasArray> arrays_of_layer(hid_t root, const std::string& layer) {
    reject_links(root, path_, layer);
    const Hdf5Handle group(H5Gopen2(root, layer.c_str(), H5P_DEFAULT));
    if (!group)
      throw UserError(
          fmt::format("{}: expected a group for the layer '{}', but the file has none", path_, layer));
    std::vector<KerasArray> arrays;
    for (const std::string& name : NamesAttribute(group, path_, heap_).read("weight_names")) {
      reject_links(group, path_, name);
      const Hdf5Handle dataset(H5Dopen2(group, name.c_str(), H5P_DEFAULT));
      if (!dataset)
        throw UserError(fmt::format("{}: the array '{}' is missing or cannot be read", path_, name));
      arrays.push_back(array_of(dataset, name));
      arrays.back().weight = name_of_weight(layer + "/" + name);
    }
    return arrays;
  }

  /// Returns the layer of the model's configuration that has the weight, or null if there is none. For a
  /// weight of a model within the model, this is the inner model.
  static KerasLayerEntry* find_owner(const std::string& weight, KerasContent& result) {
    KerasLayerEntry* owner = nullptr;
    for (KerasLayerEntry& layer : result.layers)
      if (!layer.kind.empty() && weight.starts_with(layer.name + "/") &&
          (!owner || owner->name.size() < layer.name.size()))
        owner = &layer;
    return owner;
  }

  /// Adds the arrays of the file to their layers. If the model's configuration has the layer,
  /// "layers/dense/vars/0" is the array "dense/vars/0" of this layer. Otherwise, it is the array "vars/0" of
  /// the layer "dense".
  void take_vars(KerasContent& result) {
    constexpr std::string_view kLayers = "layers/", kVars = "/vars/", kOptimizer = "optimizer/";
    for (KerasArray& array : ArrayLister(path_).list(file_)) {
      std::string name = array.name;
      if (name.starts_with(kOptimizer)) {
        result.optimizer.push_back(std::move(array));
        continue;
      }
      array.weight = name_of_weight(name);
      for (size_t at; (at = name.find(kLayers)) != std::string::npos;) name.erase(at, kLayers.size());
      if (KerasLayerEntry* const owner = find_owner(array.weight, result)) {
        array.name = name;
        owner->arrays.push_back(std::move(array));
        continue;
      }
      const size_t vars = name.rfind(kVars);
      if (vars != std::string::npos) array.name = name.substr(vars + 1);
      entry(vars == std::string::npos ? "" : name.substr(0, vars), result).arrays.push_back(std::move(array));
    }
  }

  const OpenKerasFile& opened_;
  hid_t file_;
  const std::string& path_;
  const Hdf5Heap& heap_;
  std::map<std::string, std::string> names_;  // names of weights, indexed by path
};

}  // namespace

KerasContent read_keras_file(const std::string& path) {
  const OpenKerasFile file(path);
  try {
    KerasContent result = KerasFileReader(file).read();
    result.file_bytes = std::filesystem::file_size(path);
    return result;
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {  // errors of libhdf5 are caused by the file
    throw UserError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace dtrain
