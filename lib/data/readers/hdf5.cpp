// Datasets of an HDF5 file, read by slices.
#include <bit>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <hdf5.h>

#include "base/error.h"
#include "base/hdf5_mutex.h"
#include "data/readers/array_file.h"
#include "data/readers/binding.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

/// Owns an HDF5 identifier. The mutex is held by whoever makes or drops one.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

Handle open_file(const std::string& path) {
  const InputFile probe(path);                  // says what is wrong with the path; libhdf5 does not
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors come back as values, not on standard error
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file)
    throw UserError(fmt::format("{}: expected an HDF5 file, found something else or a damaged one", path));
  return file;
}

/// The path of the only dataset at the top of the file.
std::string only_dataset(const Handle& file, const std::string& path) {
  std::vector<std::string> names;
  const auto collect = [](hid_t group, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    if (link->type != H5L_TYPE_HARD) return 0;
    const Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
    if (object && H5Iget_type(object.get()) == H5I_DATASET)
      static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  H5Literate(file.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names);
  if (names.size() != 1)
    throw UserError(fmt::format("{}: expected one dataset, or datasets named as the model's inputs, found {}",
                                path, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  return names.front();
}

/// Each step of the path must be a link inside the file: an external one would open whatever file the data
/// names.
void refuse_external_links(const Handle& file, const std::string& path, const std::string& name) {
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    const std::string prefix = name.substr(0, end);
    H5L_info_t link;
    if (H5Lget_info(file.get(), prefix.c_str(), &link, H5P_DEFAULT) < 0)
      throw UserError(fmt::format("{}: expected a dataset '{}', found no '{}'", path, name, prefix));
    if (link.type != H5L_TYPE_HARD)
      throw UserError(fmt::format("{}: expected '{}' in the file itself, found a link", path, prefix));
    if (end == std::string::npos) return;
  }
}

StoredType stored_type(const Handle& dataset, const std::string& where) {
  const Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const auto bytes = static_cast<int>(H5Tget_size(type.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  using Kind = StoredType::Kind;
  if (kind == H5T_FLOAT && (bytes == 2 || bytes == 4 || bytes == 8))
    return {Kind::real, bytes == 2 ? 4 : bytes, false};
  if (kind == H5T_INTEGER && std::has_single_bit(static_cast<unsigned>(bytes)) && bytes <= 8)
    return {H5Tget_sign(type.get()) == H5T_SGN_NONE ? Kind::unsigned_integer : Kind::signed_integer, bytes,
            false};
  if (kind == H5T_ENUM && bytes == 1) return {Kind::unsigned_integer, 1, false};  // how h5py writes booleans
  throw UserError(fmt::format("{}: expected integers or floating point numbers, found another type", where));
}

/// The type in memory that libhdf5 converts the file's to.
hid_t memory_type(StoredType type) {
  const bool is_unsigned = type.kind == StoredType::Kind::unsigned_integer;
  if (type.kind == StoredType::Kind::real) return type.bytes == 8 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
  switch (type.bytes) {
    case 1:
      return is_unsigned ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT8;
    case 2:
      return is_unsigned ? H5T_NATIVE_UINT16 : H5T_NATIVE_INT16;
    case 4:
      return is_unsigned ? H5T_NATIVE_UINT32 : H5T_NATIVE_INT32;
    default:
      return is_unsigned ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64;
  }
}

/// Shuffled rows come back to every chunk again and again: those of a data set of this size are unpacked once
/// an epoch, not once a row.
Handle chunk_cache() {
  constexpr size_t kSlots = 100003, kBytes = size_t{128} << 20;
  Handle list(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(list.get(), kSlots, kBytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  return list;
}

/// A dataset whose first axis counts the samples.
class Hdf5Column final : public Column {
 public:
  Hdf5Column(const std::string& path, std::string name) {
    const std::lock_guard lock(hdf5_mutex());
    Handle file = open_file(path);
    if (name.empty()) name = only_dataset(file, path);
    where_ = path + ":" + name;
    refuse_external_links(file, path, name);
    Handle dataset(H5Dopen2(file.get(), name.c_str(), chunk_cache().get()), H5Dclose);
    if (!dataset) throw UserError(fmt::format("{}: expected a dataset, found something else", where_));
    refuse_foreign_storage(dataset);
    type_ = stored_type(dataset, where_);
    if (H5Tget_class(Handle(H5Dget_type(dataset.get()), H5Tclose).get()) == H5T_ENUM)
      file_type_is_enum_ = true;
    read_shape(dataset);
    file_ = std::move(file);
    dataset_ = std::move(dataset);
  }
  ~Hdf5Column() override {
    const std::lock_guard lock(hdf5_mutex());
    dataset_ = Handle();
    file_ = Handle();
  }

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return static_cast<int64_t>(extents_[0]); }
  bool in_memory() const override { return false; }

  void read(std::span<const int64_t> rows, void* dst) const override {
    for_each_run(rows, [&](int64_t first, size_t place, int64_t count) {
      auto* out = static_cast<std::byte*>(dst) + place * row_bytes();
      if (type_.same_bytes()) return read_slab(first, count, out);
      const int64_t elements = count * row_elements();
      const auto raw = allocate_bytes(static_cast<size_t>(elements * type_.bytes));
      read_slab(first, count, raw.get());
      if (decode(type_, raw.get(), out, elements) < elements)
        throw UserError(
            fmt::format("{}: expected integers that fit int32, found a larger one in rows {} to {}", where_,
                        first, first + count - 1));
    });
  }

 private:
  void refuse_foreign_storage(const Handle& dataset) const {
    const Handle properties(H5Dget_create_plist(dataset.get()), H5Pclose);
    if (H5Pget_layout(properties.get()) == H5D_VIRTUAL || H5Pget_external_count(properties.get()) > 0)
      throw UserError(
          fmt::format("{}: expected data in the file itself, found a dataset kept in other files", where_));
  }

  void read_shape(const Handle& dataset) {
    const Handle space(H5Dget_space(dataset.get()), H5Sclose);
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 1)
      throw UserError(fmt::format("{}: expected an array of samples, found a single value", where_));
    extents_.resize(static_cast<size_t>(rank));
    H5Sget_simple_extent_dims(space.get(), extents_.data(), nullptr);
    check_shape(where_, Shape(std::vector<int64_t>(extents_.begin(), extents_.end())), type_.bytes);
    spec_ = {where_, Shape(std::vector<int64_t>(extents_.begin() + 1, extents_.end())), type_.dtype()};
  }

  void read_slab(int64_t first, int64_t count, void* dst) const {
    std::vector<hsize_t> start(extents_.size(), 0), extent = extents_;
    start[0] = static_cast<hsize_t>(first);
    extent[0] = static_cast<hsize_t>(count);
    const std::lock_guard lock(hdf5_mutex());
    const Handle from(H5Dget_space(dataset_.get()), H5Sclose);
    const Handle to(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose);
    const Handle enum_type(file_type_is_enum_ ? H5Dget_type(dataset_.get()) : -1, H5Tclose);
    const hid_t type = file_type_is_enum_ ? enum_type.get() : memory_type(type_);
    if (H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) < 0 ||
        H5Dread(dataset_.get(), type, to.get(), from.get(), H5P_DEFAULT, dst) < 0)
      throw UserError(
          fmt::format("{}: expected rows {} to {}, found data that cannot be read (truncated, damaged, or "
                      "packed by an unknown filter)",
                      where_, first, first + count - 1));
  }

  std::string where_;
  Handle file_, dataset_;
  StoredType type_;
  bool file_type_is_enum_ = false;
  std::vector<hsize_t> extents_;
  TensorSpec spec_;
};

struct Hdf5Options : ArrayNames {
  std::string file;
};

class Hdf5Reader final : public Reader {
 public:
  explicit Hdf5Reader(const Hdf5Options& options) : options_(options) {}

  Columns open(const ReadRequest& request) const override {
    const std::string path = request.find(options_.file);
    Columns columns;
    for (const std::string& name : options_.resolve(request)) columns.push_back(open_hdf5(path, name));
    return columns;
  }
  std::vector<std::string> files() const override { return {options_.file}; }

 private:
  Hdf5Options options_;
};

}  // namespace

std::shared_ptr<const Column> open_hdf5(const std::string& path, const std::string& name) {
  return std::make_shared<Hdf5Column>(path, name);
}

void add_hdf5(KindTable<Reader>& table) {
  Schema<Hdf5Options> schema("Datasets of an HDF5 file whose first axis counts the samples; read by slices.");
  schema.required("file", &Hdf5Options::file, "the file");
  table.add<Hdf5Reader>("hdf5", add_array_names(schema, "the dataset"));
}

}  // namespace dtrain
