#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hdf5_session.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/sparse_file.h"

namespace dtrain {

namespace {
hid_t file_type(DType type) {
  switch (type) {
    case DType::float32:
      return H5T_IEEE_F32LE;
    case DType::int32:
      return H5T_STD_I32LE;
    case DType::uint8:
      return H5T_STD_U8LE;
    case DType::bfloat16:
    case DType::float16:
    case DType::float64:
      break;
  }
  throw Error(fmt::format("a checkpoint cannot hold an array of {}", name_of(type)));
}

/// Builds the HDF5 file in memory: no disk, and no failure of one, while libhdf5 is at work.
class ImageWriter {
 public:
  ImageWriter() {
    // Times would make equal contents differ.
    checked(H5Pset_obj_track_times(file_list_, false), "leave out times");
    checked(H5Pset_obj_track_times(group_list_, false), "leave out times");
    checked(H5Pset_obj_track_times(dataset_list_, false), "leave out times");
    checked(H5Pset_layout(dataset_list_, H5D_CONTIGUOUS), "set a layout");
    checked(H5Pset_fill_time(dataset_list_, H5D_FILL_TIME_NEVER), "set a fill time");
    // Gives each dataset its place at once; the array itself never goes through libhdf5.
    checked(H5Pset_alloc_time(dataset_list_, H5D_ALLOC_TIME_EARLY), "set when to allocate");
  }

  /// Leaves in `target` all that `content` says, its state as the text `state`; refers to what both hold.
  void write(const CheckpointContent& content, const std::string& state, SparseFile& target) {
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
    target.install(access);
    // Since 1.8 attributes may be larger than 64 KiB, and every library since can read it.
    checked(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "choose a format");
    checked(H5Pset_alignment(access, 1, kAlignment), "align arrays");
    Hdf5Handle file(H5Fcreate("checkpoint", H5F_ACC_TRUNC, file_list_, access), "create a file in memory");
    file_ = file;
    target_ = &target;
    write_model(content);
    write_own(content, state);
    checked(H5Fclose(file.release()), "close the file");
  }

 private:
  void write_model(const CheckpointContent& content) {
    const Hdf5Handle root(H5Gopen2(file_, "/", H5P_DEFAULT), "open /");
    write_versions(root);
    if (!content.model_config.is_null()) write_text(root, kModelConfig, content.model_config.dump());
    if (!content.training_config.is_null()) write_text(root, kTrainingConfig, content.training_config.dump());
    const Hdf5Handle group = make_group(kWeights);
    write_versions(group);
    std::vector<std::string> names;
    for (const LayerWeights& layer : content.layers)
      names.push_back(layer.keras_name.empty() ? layer.layer : layer.keras_name);
    write_names(group, kLayerNames, names);
    for (size_t i = 0; i < names.size(); ++i)
      write_arrays(fmt::format("{}/{}", kWeights, names[i]), names[i] + "/", content.layers[i].weights);
  }

  void write_own(const CheckpointContent& content, const std::string& state) {
    const Hdf5Handle own = make_group(kOwn);
    write_text(own, "format", fmt::format("{}", kFormat));
    std::vector<std::string> layers;
    for (const LayerWeights& layer : content.layers) layers.push_back(layer.layer);
    write_names(own, kLayerNames, layers);
    write_bytes(kState, state);
    write_bytes(kHistory, content.history);
    if (!content.tables.empty()) write_bytes(kTables, content.tables);
    write_bytes(kConfig, content.config_yaml);
    const Hdf5Handle optimizer = make_group(kOptimizer);
    std::vector<std::string> names;
    for (const OptimizerSlot& slot : content.slots) names.push_back(slot.name);
    write_names(optimizer, kSlotNames, names);
    for (const OptimizerSlot& slot : content.slots)
      write_arrays(fmt::format("{}/{}", kOptimizer, slot.name), "", slot.arrays);
  }

  /// Keras 2's, whose names and paths these are.
  void write_versions(hid_t object) {
    write_text(object, "keras_version", "2.15.0");
    write_text(object, "backend", "tensorflow");
  }

  void write_arrays(const std::string& path, const std::string& prefix, const std::vector<ArrayRef>& arrays) {
    const Hdf5Handle group = make_group(path);
    std::vector<std::string> names;
    for (const ArrayRef& array : arrays) names.push_back(prefix + array.name + kSuffix);
    write_names(group, kWeightNames, names);
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::string where = path + "/" + names[i];
      make_group(where.substr(0, where.rfind('/')));
      write_array(where, arrays[i]);
    }
  }

  void write_bytes(const std::string& path, const std::string& text) {
    write_array(path, {path, Shape{static_cast<int64_t>(text.size())}, DType::uint8, text.data()});
  }

  void write_array(const std::string& path, const ArrayRef& array) {
    const std::string doing = "write " + path;
    const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end());
    const Hdf5Handle space(extents.empty()
                               ? H5Screate(H5S_SCALAR)
                               : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                           doing);
    const hid_t type = file_type(array.dtype);
    const Hdf5Handle dataset(
        H5Dcreate2(file_, path.c_str(), type, space, H5P_DEFAULT, dataset_list_, H5P_DEFAULT), doing);
    if (array.bytes() == 0) return;
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) throw_hdf5_error(doing);
    target_->refer(offset, {static_cast<const std::byte*>(array.data), array.bytes()});
  }

  /// Opens or makes the group and those above it; libhdf5's own way of making those above would store times.
  Hdf5Handle make_group(const std::string& path) {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string part = path.substr(0, end);
      if (groups_.insert(part).second)
        Hdf5Handle(H5Gcreate2(file_, part.c_str(), H5P_DEFAULT, group_list_, H5P_DEFAULT), "make " + part);
      if (end == std::string::npos) break;
    }
    return Hdf5Handle(H5Gopen2(file_, path.c_str(), H5P_DEFAULT), "open " + path);
  }

  void write_text(hid_t object, const std::string& name, const std::string& text) {
    const Hdf5Handle space(H5Screate(H5S_SCALAR), "write " + name);
    write_attribute(object, name, space, text.data(), text.size());
  }

  /// Fixed-length strings, padded with zeros.
  void write_names(hid_t object, const std::string& name, const std::vector<std::string>& names) {
    size_t width = 1;
    for (const std::string& item : names) width = std::max(width, item.size());
    if (width > kAttributeBytes)
      throw Error(fmt::format("a name in {} is longer than {} bytes", name, kAttributeBytes));
    const size_t fitting = kAttributeBytes / width;
    const size_t parts = std::max<size_t>(1, (names.size() + fitting - 1) / fitting);
    auto first = names.begin();
    for (size_t part = 0; part < parts; ++part) {
      // As numpy.array_split: the first parts are longer by one where it does not divide.
      const size_t count = names.size() / parts + (part < names.size() % parts ? 1 : 0);
      std::string block(count * width, '\0');
      for (size_t i = 0; i < count; ++i, ++first) first->copy(block.data() + i * width, width);
      const hsize_t extent = count;
      const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr), "write " + name);
      write_attribute(object, parts == 1 ? name : name + std::to_string(part), space, block.data(), width);
    }
  }

  void write_attribute(hid_t object, const std::string& name, hid_t space, const char* data, size_t width) {
    const std::string doing = "write the attribute " + name;
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), doing);
    checked(H5Tset_size(type, std::max<size_t>(width, 1)), doing);
    checked(H5Tset_strpad(type, H5T_STR_NULLPAD), doing);
    checked(H5Tset_cset(type, H5T_CSET_UTF8), doing);
    const Hdf5Handle attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                               doing);
    checked(H5Awrite(attribute, type, data), doing);
  }

  Hdf5Session session_;
  Hdf5Handle file_list_{H5Pcreate(H5P_FILE_CREATE), "make a property list"};
  Hdf5Handle group_list_{H5Pcreate(H5P_GROUP_CREATE), "make a property list"};
  Hdf5Handle dataset_list_{H5Pcreate(H5P_DATASET_CREATE), "make a property list"};
  hid_t file_ = H5I_INVALID_HID;
  SparseFile* target_ = nullptr;
  std::unordered_set<std::string> groups_;
};
}  // namespace

void save_checkpoint(const Location& location, const CheckpointContent& content) {
  const std::string state = content.state.dump();
  SparseFile file;
  try {
    ImageWriter().write(content, state, file);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", location.shown(), error.what()));
  }
  std::vector<std::span<const std::byte>> parts = file.parts();
  const std::string header = make_header(parts);
  parts.insert(parts.begin(), std::as_bytes(std::span(header)));
  write_file(location, parts);
}

}  // namespace dtrain
