#include "checkpoint/weight_file.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/hdf5_session.h"
#include "base/hdf5_storage.h"
#include "checkpoint/foreign_file.h"
#include "checkpoint/names_attribute.h"

namespace dtrain {

namespace {

/// The parts of what Keras calls a weight: "dense_1/kernel:0" has "dense_1" and "kernel".
std::vector<std::string> parts_of_name(std::string_view name) {
  name = name.substr(0, name.rfind(':') == std::string_view::npos ? name.size() : name.rfind(':'));
  std::vector<std::string> parts;
  while (true) {
    const size_t slash = name.find('/');
    parts.emplace_back(name.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    name.remove_prefix(slash + 1);
  }
}

/// The last `count` parts, or all where there are no more.
std::string end_of_name(const std::vector<std::string>& parts, size_t count) {
  const size_t first = parts.size() - std::min(count, parts.size());
  return fmt::format("{}", fmt::join(parts.begin() + static_cast<ptrdiff_t>(first), parts.end(), "/"));
}

/// The weights' names in a layer's group: as short as they may be without being the same.
std::vector<std::string> short_names(const std::vector<std::string>& names) {
  constexpr size_t kMostParts = 8;  // of models within models; then the whole name
  std::vector<std::vector<std::string>> parts;
  for (const std::string& name : names) parts.push_back(parts_of_name(name));
  std::vector<size_t> counts(names.size(), 1);
  for (size_t count = 1; count <= kMostParts; ++count) {
    std::map<std::string, int> ends;
    for (const auto& one : parts) ++ends[end_of_name(one, count)];
    for (size_t i = 0; i < names.size(); ++i)
      if (counts[i] == count && ends[end_of_name(parts[i], count)] > 1)
        counts[i] = count < kMostParts ? count + 1 : parts[i].size();
  }
  std::vector<std::string> chosen;
  for (size_t i = 0; i < names.size(); ++i) chosen.push_back(end_of_name(parts[i], counts[i]));
  return chosen;
}

/// Throws UserError for a name that stands twice in what `where` says.
void refuse_twice(const std::vector<std::string>& names, const std::string& where) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second)
      throw UserError(fmt::format("{}: expected each name once, found '{}' twice", where, name));
}

struct FileArray {
  Shape shape;
  std::optional<std::vector<float>> values;
};

/// A data set of floating point numbers of any width, as float32; one of another type has no values.
FileArray read_array(hid_t group, const std::string& name, const std::string& where, int64_t file_bytes) {
  refuse_links(group, where, name);
  const Hdf5Handle dataset(H5Dopen2(group, name.c_str(), H5P_DEFAULT));
  if (!dataset) throw UserError(fmt::format("{}: expected an array, found none", where));
  const std::string doing = "read " + where;
  const Hdf5Handle type(H5Dget_type(dataset), doing), space(H5Dget_space(dataset), doing);
  refuse_foreign_storage(dataset, where);
  const int rank = checked(H5Sget_simple_extent_ndims(space), doing);
  std::vector<hsize_t> extents(static_cast<size_t>(rank));
  checked(H5Sget_simple_extent_dims(space, extents.data(), nullptr), doing);
  std::vector<int64_t> shape;
  double elements = 1;
  for (const hsize_t extent : extents) {
    shape.push_back(static_cast<int64_t>(extent));
    elements *= static_cast<double>(extent);
  }
  if (H5Tget_class(type) != H5T_FLOAT) return {Shape(shape), std::nullopt};
  // What is not stored may not be asked for: a header can say any shape.
  if (elements * static_cast<double>(H5Tget_size(type)) >
      static_cast<double>(H5Dget_storage_size(dataset)) * 1024)
    throw UserError(fmt::format("{}: expected an array that is stored, found the shape of one only", where));
  check_first_chunk(dataset, where, file_bytes);
  std::vector<float> values(static_cast<size_t>(elements));
  checked(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), doing);
  return {Shape(shape), std::move(values)};
}

}  // namespace

WeightFile WeightFile::load(const std::string& path) {
  if (!begins_as_hdf5(path)) return of_checkpoint(path);
  try {
    return of_keras(path);
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {  // libhdf5's: the file is at fault
    throw UserError(error.what());
  }
}

WeightFile WeightFile::of_checkpoint(const std::string& path) {
  WeightFile file;
  file.checkpoint_ = std::make_shared<const Checkpoint>(Checkpoint::load(path));
  for (const LayerWeights& layer : file.checkpoint_->content().layers)
    for (ArrayRef weight : layer.weights) {
      weight.name = layer.layer + "/" + weight.name;
      file.weights_.push_back(std::move(weight));
    }
  return file;
}

WeightFile WeightFile::of_keras(const std::string& path) {
  WeightFile file;
  const Hdf5Session session;
  const Hdf5Handle opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!opened) throw why_not_opened(path);
  refuse_links(opened, path, "model_weights");
  const bool whole_model = H5Lexists(opened, "model_weights", H5P_DEFAULT) > 0;
  const Hdf5Handle root(H5Gopen2(opened, whole_model ? "model_weights" : "/", H5P_DEFAULT), "read " + path);
  const Hdf5References references;
  const Hdf5Heap heap = heap_of(opened, path);
  const NamesAttribute layers(root, path, heap);
  if (!layers.exists("layer_names"))
    throw UserError(fmt::format(
        "{}: expected weights as Keras's .h5 has them, found {}", path,
        keras_layout(opened, path) == KerasLayout::vars ? describe_keras_3_weights() : "no layer_names"));
  const std::vector<std::string> layer_names = layers.read("layer_names");
  refuse_twice(layer_names, path + ": layer_names");
  for (const std::string& layer : layer_names) {
    refuse_links(root, path, layer);
    const Hdf5Handle group(H5Gopen2(root, layer.c_str(), H5P_DEFAULT));
    if (!group) throw UserError(fmt::format("{}: expected the layer '{}', found no such group", path, layer));
    const std::vector<std::string> names = NamesAttribute(group, path, heap).read("weight_names");
    refuse_twice(names, fmt::format("{}: weight_names of '{}'", path, layer));
    const std::vector<std::string> chosen = short_names(names);
    for (size_t i = 0; i < names.size(); ++i) {
      FileArray array = read_array(group, names[i], fmt::format("{}: '{}' of '{}'", path, names[i], layer),
                                   heap.file_bytes());
      ArrayRef weight{layer + "/" + chosen[i], array.shape, DType::float32, nullptr};
      if (array.values) weight.data = file.arrays_.emplace_back(*std::move(array.values)).data();
      file.weights_.push_back(std::move(weight));
    }
  }
  return file;
}

}  // namespace dtrain
