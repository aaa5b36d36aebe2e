#include "interop/keras/files/weights.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/names_attribute.h"
#include "data/files/mapped_file.h"
#include "hdf5/hdf5_storage.h"
#include "interop/keras/files/class_paths.h"
#include "interop/keras/files/open_file.h"
#include "interop/permuted.h"

namespace dtrain {

namespace {

/// Throws UserError if a name occurs twice. `where` describes the list in the message.
void reject_twice(const std::vector<std::string>& names, const std::string& where) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second)
      throw UserError(fmt::format("{}: expected different names, but '{}' occurs twice", where, name));
}

/// Throws UserError if the file is too short to contain the data of an array. An uncompressed array needs all
/// of its bytes, and no filter compresses by more than a factor of 1032 (the limit of DEFLATE).
void check_is_stored(hid_t dataset, double bytes, const std::string& where) {
  const Hdf5Handle properties(H5Dget_create_plist(dataset), "read " + where);
  const bool is_packed = H5Pget_nfilters(properties) > 0;
  constexpr double kMostTimes = 1032, kSmall = 65536;
  const auto stored = static_cast<double>(H5Dget_storage_size(dataset));
  if (bytes > stored * (is_packed ? kMostTimes : 1) + (is_packed ? kSmall : 0))
    throw UserError(
        fmt::format("{}: expected an array of {:.0f} bytes, but the file stores only {:.0f} bytes, which are "
                    "too few even for a compressed array",
                    where, bytes, stored));
  check_chunk_index(dataset, where);
}

/// An open file. If its bytes are in memory (because they were unpacked from an archive, or the file is
/// mapped), also refers to these bytes.
struct Source {
  const OpenKerasFile& file;
  std::shared_ptr<const void> owner;  ///< owner of `bytes`
  std::span<const std::byte> bytes;
  bool with_values = true;  ///< whether the values of the arrays are read

  Source(const OpenKerasFile& open, const std::shared_ptr<const MappedFile>& mapped) : file(open) {
    if (open.image().data) {
      owner = open.image().data;
      bytes = open.image().span();
    } else if (mapped) {
      owner = mapped;
      bytes = {mapped->data(), mapped->size()};
    }
  }
};

/// Returns a pointer to a float32 array within the source's bytes. Returns null if the array is not available
/// there, for example because it is compressed; it must then be read by libhdf5.
std::shared_ptr<const float[]> in_memory(const Source& source, hid_t dataset, hid_t type, size_t bytes) {
  const Hdf5Handle properties(H5Dget_create_plist(dataset));
  if (!source.owner || bytes == 0 || H5Pget_layout(properties) != H5D_CONTIGUOUS ||
      H5Tequal(type, H5T_IEEE_F32LE) <= 0)
    return nullptr;
  const haddr_t offset = H5Dget_offset(dataset);
  const size_t size = source.bytes.size();
  if (offset == HADDR_UNDEF || offset > size || bytes > size - offset) return nullptr;
  const std::byte* first = source.bytes.data() + offset;
  if (reinterpret_cast<uintptr_t>(first) % alignof(float) != 0) return nullptr;
  return {source.owner, reinterpret_cast<const float*>(first)};
}

KerasWeight read_array(const Source& source, hid_t group, const std::string& name, const std::string& where) {
  reject_links(group, where, name);
  const Hdf5Handle dataset(H5Dopen2(group, name.c_str(), H5P_DEFAULT));
  if (!dataset) throw UserError(fmt::format("{}: the array is missing or cannot be read", where));
  const std::string doing = "read " + where;
  const Hdf5Handle type(H5Dget_type(dataset), doing), space(H5Dget_space(dataset), doing);
  reject_foreign_storage(dataset, where);
  const int rank = checked(H5Sget_simple_extent_ndims(space), doing);
  std::vector<hsize_t> extents(static_cast<size_t>(rank));
  checked(H5Sget_simple_extent_dims(space, extents.data(), nullptr), doing);
  double elements = 1;
  for (const hsize_t extent : extents) elements *= static_cast<double>(extent);
  KerasWeight weight{name, Shape(std::vector<int64_t>(extents.begin(), extents.end())), {}, {}};
  if (!source.with_values) return weight;
  const H5T_class_t kind = H5Tget_class(type);
  if (kind != H5T_FLOAT && (kind != H5T_INTEGER || elements != 1)) return weight;
  check_is_stored(dataset, elements * static_cast<double>(H5Tget_size(type)), where);
  check_first_chunk(dataset, where, source.file.heap().file_bytes());
  if (kind == H5T_INTEGER) {
    int64_t number = 0;
    checked(H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &number), doing);
    weight.integer = number;
    return weight;
  }
  const auto count = static_cast<size_t>(elements);
  weight.values = in_memory(source, dataset, type, count * sizeof(float));
  if (weight.values) return weight;
  auto values = std::make_shared_for_overwrite<float[]>(count);
  if (count > 0)
    checked(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.get()), doing);
  weight.values = std::move(values);
  return weight;
}

std::vector<std::string> names_of_links(hid_t group, const std::string& path) {
  H5G_info_t info{};
  const std::string doing = "list the arrays of " + path;
  checked(H5Gget_info(group, &info), doing);
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto get = [&](char* into, size_t size) {
      return checked(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, into, size, H5P_DEFAULT),
                     doing);
    };
    std::string name(static_cast<size_t>(get(nullptr, 0)), '\0');
    get(name.data(), name.size() + 1);
    names.push_back(std::move(name));
  }
  return names;
}

/// Reads the weights that a group lists in its attribute weight_names.
std::vector<KerasWeight> read_listed(const Source& source, hid_t group, const std::string& what) {
  const OpenKerasFile& file = source.file;
  const std::vector<std::string> names = NamesAttribute(group, file.path(), file.heap()).read("weight_names");
  reject_twice(names, fmt::format("{}: weight_names of '{}'", file.path(), what));
  std::vector<KerasWeight> weights;
  for (const std::string& name : names)
    weights.push_back(
        read_array(source, group, name, fmt::format("{}: '{}' of '{}'", file.path(), name, what)));
  return weights;
}

KerasWeights read_layers(const Source& source) {
  KerasWeights result;
  const OpenKerasFile& file = source.file;
  const std::string& path = file.path();
  const Hdf5Handle root = file.open_weights();
  const std::vector<std::string> names = NamesAttribute(root, path, file.heap()).read("layer_names");
  reject_twice(names, path + ": layer_names");
  for (const std::string& name : names) {
    reject_links(root, path, name);
    const Hdf5Handle group(H5Gopen2(root, name.c_str(), H5P_DEFAULT));
    if (!group)
      throw UserError(
          fmt::format("{}: expected a group for the layer '{}', but the file has none", path, name));
    result.groups.push_back({name, name, read_listed(source, group, name)});
  }
  constexpr const char* kOptimizer = "optimizer_weights";
  if (H5Lexists(file.file(), kOptimizer, H5P_DEFAULT) <= 0) return result;
  reject_links(file.file(), path, kOptimizer);
  const Hdf5Handle optimizer(H5Gopen2(file.file(), kOptimizer, H5P_DEFAULT), "read " + path);
  result.optimizer = read_listed(source, optimizer, kOptimizer);
  return result;
}

/// Reads all groups named `vars` and the numbered arrays in each.
class VarsReader {
 public:
  explicit VarsReader(const Source& source) : source_(source), file_(source.file) {}

  KerasWeights read() {
    visit(file_.file(), "", 0);
    for (KerasWeightGroup& group : result_.groups) find_owner(group);
    return std::move(result_);
  }

 private:
  /// Sets `layer` and `wrapped` of a group if its weights belong to a part of a layer: the cell of a
  /// recurrent layer, a projection of an attention layer, or the inner layer of a TimeDistributed. The path
  /// of such a group ends with the path of the part.
  void find_owner(KerasWeightGroup& group) {
    std::string path = group.name;
    for (const KerasLayerPart& part : kKerasLayerParts)
      if (const std::string end = fmt::format("/{}", part.group); path.ends_with(end)) {
        path.resize(path.size() - end.size());
        break;
      }
    while (path.ends_with(kKerasWrappedLayer)) {  // a TimeDistributed may contain another one
      if (group.wrapped.empty()) group.wrapped = names_[path];
      path.resize(path.size() - kKerasWrappedLayer.size());
    }
    if (path != group.name) group.layer = names_[path];
  }

  // Limits for malicious files, in which hard links may form cycles or lead to the same group along a huge
  // number of paths.
  static constexpr int kMostDepth = 64;
  static constexpr size_t kMostLinks = 1'000'000;

  void visit(hid_t group, const std::string& path, int depth) {
    const std::vector<std::string> names = names_of_links(group, file_.path());
    links_ += names.size();
    if (depth > kMostDepth || links_ > kMostLinks)
      throw UserError(fmt::format(
          "{}: expected at most {} groups and arrays and at most {} levels of groups, but the file has more",
          file_.path(), kMostLinks, kMostDepth));
    for (const std::string& name : names) {
      reject_links(group, file_.path(), name);
      const Hdf5Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), "open " + path + name);
      if (H5Iget_type(object) != H5I_GROUP) continue;
      if (name == "vars") {
        take(object, path.empty() ? "" : path.substr(0, path.size() - 1));
      } else {
        visit(object, path + name + "/", depth + 1);
      }
    }
  }

  void take(hid_t group, const std::string& path) {
    std::vector<std::pair<int64_t, std::string>> numbered;
    for (const std::string& name : names_of_links(group, file_.path())) {
      int64_t number = -1;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (error != std::errc() || end != name.data() + name.size())
        throw UserError(
            fmt::format("{}: expected numbered arrays in {}/vars, found '{}'", file_.path(), path, name));
      numbered.emplace_back(number, name);
    }
    std::sort(numbered.begin(), numbered.end());
    std::vector<KerasWeight> weights;
    for (const auto& [number, name] : numbered)
      weights.push_back(
          read_array(source_, group, name, fmt::format("{}: {}/vars/{}", file_.path(), path, name)));
    if (path == "optimizer") {
      result_.optimizer = std::move(weights);
      return;
    }
    const std::vector<std::string> layer = NamesAttribute(group, file_.path(), file_.heap()).read("name");
    std::string& name = names_[path];
    if (!layer.empty()) name = layer.front();
    if (!weights.empty()) result_.groups.push_back({path, name, std::move(weights)});
  }

  const Source& source_;
  const OpenKerasFile& file_;
  KerasWeights result_;
  std::map<std::string, std::string> names_;  // names of layers, indexed by group path
  size_t links_ = 0;
};

KerasWeights read_all_groups(const Source& source) {
  const OpenKerasFile& file = source.file;
  try {
    return file.layout() == KerasLayout::layers ? read_layers(source) : VarsReader(source).read();
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {  // errors of libhdf5 are caused by the file
    throw UserError(fmt::format("{}: {}", file.path(), error.what()));
  }
}

}  // namespace

KerasWeight with_axes(const KerasWeight& weight, const std::vector<int64_t>& axes) {
  KerasWeight result = weight;
  result.shape = permuted(weight.shape, axes);
  const std::span<const float> values{weight.values.get(), static_cast<size_t>(weight.shape.elements())};
  const auto moved = std::make_shared<std::vector<float>>(permuted(values, weight.shape, axes));
  result.values = {moved, moved->data()};
  return result;
}

KerasWeight with_channels_last(const KerasWeight& array) {
  std::vector<int64_t> axes;
  for (size_t axis = 1; axis < array.shape.rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  axes.push_back(0);
  return array.values && array.shape.rank() > 1 ? with_axes(array, axes) : array;
}

KerasWeights read_keras_weights(const OpenKerasFile& file, const std::shared_ptr<const MappedFile>& mapped) {
  return read_all_groups(Source(file, mapped));
}

KerasWeights read_keras_shapes(const OpenKerasFile& file) {
  Source source(file, nullptr);
  source.with_values = false;
  return read_all_groups(source);
}

}  // namespace dtrain
