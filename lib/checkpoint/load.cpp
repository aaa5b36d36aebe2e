#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/file.h"
#include "checkpoint/hdf5_session.h"
#include "checkpoint/layout.h"
#include "checkpoint/sparse_file.h"

namespace dtrain {

namespace {
Hdf5Handle open_image(SparseFile& file, std::span<const std::byte> image) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
  file.refer(0, image);
  file.install(access);
  return Hdf5Handle(H5Fopen("checkpoint", H5F_ACC_RDONLY, access), "open it");
}

[[noreturn]] void refuse(std::string_view where, std::string_view expected, std::string_view found) {
  throw UserError(fmt::format("{}: expected {}, found {}", where, expected, found));
}

/// Reads an HDF5 file that another program may have made with any intention: follows no link out of it,
/// trusts no size, and lets libhdf5 read attributes only.
class ImageReader {
 public:
  ImageReader(std::span<const std::byte> image, int format)
      : image_(image), format_(format), file_(open_image(sparse_, image)) {}

  CheckpointContent read() {
    refuse_links();
    CheckpointContent content;
    read_model(content);
    content.state = Json::parse(read_bytes(kState));
    content.config_yaml = read_bytes(kConfig);
    for (const std::string& slot : read_names(open_group(kOptimizer), kOptimizer, kSlotNames))
      content.slots.push_back({slot, read_arrays(fmt::format("{}/{}", kOptimizer, slot), "")});
    return content;
  }

 private:
  /// Only links to objects of this file may be there.
  void refuse_links() {
    std::string found;
    const auto visit = [](hid_t, const char* name, const H5L_info_t* info, void* out) -> herr_t {
      if (info->type == H5L_TYPE_HARD) return 0;
      *static_cast<std::string*>(out) = name;
      return 1;
    };
    checked(H5Lvisit(file_, H5_INDEX_NAME, H5_ITER_NATIVE, visit, &found), "walk through the file");
    if (!found.empty()) refuse("/" + found, "a group or dataset", "a soft or external link");
  }

  void read_model(CheckpointContent& content) {
    content.model_config = read_json(kModelConfig);
    content.training_config = read_json(kTrainingConfig);
    const std::vector<std::string> keras = read_names(open_group(kWeights), kWeights, kLayerNames);
    const std::vector<std::string> own =
        format_ == 1 ? keras : read_names(open_group(kOwn), kOwn, kLayerNames);
    if (own.size() != keras.size())
      refuse(kOwn, fmt::format("the names of {} layers", keras.size()), fmt::format("{}", own.size()));
    for (size_t i = 0; i < own.size(); ++i)
      content.layers.push_back(
          {own[i], read_arrays(fmt::format("{}/{}", kWeights, keras[i]), keras[i] + "/"), keras[i]});
  }

  /// An attribute of the file's root; null where there is none.
  Json read_json(const std::string& name) {
    const auto text = read_attribute(open_group("/"), "/", name);
    if (!text) return {};
    return Json::parse(text->empty() ? std::string() : text->front());
  }

  Hdf5Handle open_group(const std::string& path) {
    return Hdf5Handle(H5Gopen2(file_, path.c_str(), H5P_DEFAULT), "open " + path);
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

  /// The array as it lies in the image.
  ArrayRef read_array(const std::string& path) {
    const std::string doing = "open " + path;
    const Hdf5Handle dataset(H5Dopen2(file_, path.c_str(), H5P_DEFAULT), doing);
    refuse_storage(dataset, path);
    ArrayRef array{path, shape_of(dataset, path), dtype_of_dataset(dataset, path), image_.data()};
    if (array.bytes() == 0) return array;
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF || offset % kAlignment != 0 || offset > image_.size() ||
        array.bytes() > image_.size() - offset)
      refuse(path, fmt::format("{} aligned bytes within the file", array.bytes()),
             fmt::format("offset {}", offset));
    array.data = image_.data() + offset;
    return array;
  }

  void refuse_storage(hid_t dataset, const std::string& path) {
    const Hdf5Handle list(H5Dget_create_plist(dataset), "open " + path);
    if (const H5D_layout_t layout = H5Pget_layout(list); layout != H5D_CONTIGUOUS)
      refuse(path, "a contiguous dataset", layout == H5D_VIRTUAL ? "a virtual one" : "another layout");
    if (checked(H5Pget_external_count(list), "open " + path) != 0)
      refuse(path, "data in this file", "external storage");
    if (checked(H5Pget_nfilters(list), "open " + path) != 0) refuse(path, "no filters", "some");
  }

  Shape shape_of(hid_t dataset, const std::string& path) {
    const Hdf5Handle space(H5Dget_space(dataset), "open " + path);
    const H5S_class_t kind = H5Sget_simple_extent_type(space);
    if (kind != H5S_SCALAR && kind != H5S_SIMPLE) refuse(path, "a shape", "a null dataspace");
    std::array<hsize_t, H5S_MAX_RANK> extents{};
    const int rank = checked(H5Sget_simple_extent_dims(space, extents.data(), nullptr), "open " + path);
    std::vector<int64_t> shape;
    uint64_t elements = 1;
    for (size_t axis = 0; axis < static_cast<size_t>(rank); ++axis) {
      // Also keeps the product from overflowing.
      if (extents[axis] > image_.size() / std::max<uint64_t>(elements, 1))
        refuse(path, "a shape that fits into the file", fmt::format("an extent of {}", extents[axis]));
      elements *= extents[axis];
      shape.push_back(static_cast<int64_t>(extents[axis]));
    }
    return Shape(std::move(shape));
  }

  DType dtype_of_dataset(hid_t dataset, const std::string& path) {
    const Hdf5Handle type(H5Dget_type(dataset), "open " + path);
    if (H5Tequal(type, H5T_IEEE_F32LE) > 0) return DType::float32;
    if (H5Tequal(type, H5T_STD_I32LE) > 0) return DType::int32;
    if (H5Tequal(type, H5T_STD_U8LE) > 0) return DType::uint8;
    refuse(path, "little-endian float32, int32 or uint8", "another type");
  }

  /// A list of names, from one attribute or several.
  std::vector<std::string> read_names(hid_t object, const std::string& path, const std::string& name) {
    if (auto whole = read_attribute(object, path, name)) return *whole;
    std::vector<std::string> names;
    for (size_t part = 0;; ++part) {
      const auto block = read_attribute(object, path, name + std::to_string(part));
      if (!block && part == 0) refuse(path, "the attribute " + name, "none");
      if (!block) return names;
      names.insert(names.end(), block->begin(), block->end());
    }
  }

  /// The strings of an attribute; nothing where there is no such attribute.
  std::optional<std::vector<std::string>> read_attribute(hid_t object, const std::string& path,
                                                         const std::string& name) {
    const std::string doing = fmt::format("read the attribute {} of {}", name, path);
    if (checked(H5Aexists(object, name.c_str()), doing) == 0) return std::nullopt;
    const Hdf5Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), doing);
    const Hdf5Handle type(H5Aget_type(attribute), doing);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
      refuse(path, fmt::format("fixed-length strings in the attribute {}", name), "another type");
    const Hdf5Handle space(H5Aget_space(attribute), doing);
    const size_t width = H5Tget_size(type);
    const auto count = static_cast<size_t>(checked(H5Sget_simple_extent_npoints(space), doing));
    if (width == 0 || count > image_.size() / width)
      refuse(path, fmt::format("an attribute {} that fits into the file", name),
             fmt::format("{} strings of {} bytes", count, width));
    std::string block(count * width, '\0');
    if (count > 0) checked(H5Aread(attribute, type, block.data()), doing);
    std::vector<std::string> strings;
    for (size_t i = 0; i < count; ++i) {
      const std::string_view padded = std::string_view(block).substr(i * width, width);
      strings.emplace_back(padded.substr(0, padded.find('\0')));
    }
    return strings;
  }

  Hdf5Session session_;
  std::span<const std::byte> image_;
  int format_;
  SparseFile sparse_;
  Hdf5Handle file_;
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
  const int format = verify_header(path, file.span());
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  checkpoint.file_bytes_ = file.size;
  checkpoint.content_ = read_image(path, file.span().subspan(kHeaderBytes), format);
  checkpoint.file_ = file.data;
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
