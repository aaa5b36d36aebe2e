// Datasets of an HDF5 file, read by slices.
#include <array>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hdf5_session.h"
#include "data/readers/array_file.h"
#include "data/readers/binding.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

/// `file` is the same one, opened before; its messages say what is wrong with the path, libhdf5's do not.
Hdf5Handle open_file(const InputFile& file) {
  Hdf5Handle opened(H5Fopen(file.path().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (opened) {
    void* descriptor = nullptr;
    if (H5Fget_vfd_handle(opened, H5P_DEFAULT, &descriptor) >= 0 && descriptor &&
        !file.is_same(*static_cast<const int*>(descriptor)))
      throw Error(fmt::format("{}: the file was changed while it was opened", file.path()));
    return opened;
  }
  if (file.is_locked() || hdf5_said("open for write"))
    throw UserError(fmt::format("{}: another program has the file open for writing", file.path()));
  if (hdf5_said("truncated file"))
    throw UserError(fmt::format("{}: expected a whole HDF5 file, found one that was cut short", file.path()));
  throw UserError(
      fmt::format("{}: expected an HDF5 file, found something else or a damaged one", file.path()));
}

/// The path of the only dataset at the top of the file.
std::string only_dataset(const Hdf5Handle& file, const std::string& path) {
  std::vector<std::string> names;
  const auto collect = [](hid_t group, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    if (link->type != H5L_TYPE_HARD) return 0;
    const Hdf5Handle object(H5Oopen(group, name, H5P_DEFAULT));
    if (object && H5Iget_type(object) == H5I_DATASET)
      static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names);
  if (names.size() != 1)
    throw UserError(fmt::format("{}: expected one dataset, or datasets named as the model's inputs, found {}",
                                path, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  return names.front();
}

/// Each step of the path must be a link inside the file: an external one would open whatever file the data
/// names.
void refuse_external_links(const Hdf5Handle& file, const std::string& path, const std::string& name) {
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    const std::string prefix = name.substr(0, end);
    H5L_info_t link;
    if (H5Lget_info(file, prefix.c_str(), &link, H5P_DEFAULT) < 0)
      throw UserError(fmt::format("{}: expected a dataset '{}', found no '{}'", path, name, prefix));
    if (link.type != H5L_TYPE_HARD)
      throw UserError(fmt::format("{}: expected '{}' in the file itself, found a link", path, prefix));
    if (end == std::string::npos) return;
  }
}

/// How the values come from libhdf5; booleans, an enumeration by h5py's custom, as bytes.
StoredType stored_type(const Hdf5Handle& type, const std::string& where) {
  const size_t bytes = H5Tget_size(type);
  const H5T_class_t kind = H5Tget_class(type);
  using Kind = StoredType::Kind;
  if (kind == H5T_FLOAT && (bytes == 2 || bytes == 4 || bytes == 8))
    return {Kind::real, bytes == 8 ? 8 : 4, false};
  if (kind == H5T_INTEGER && std::has_single_bit(bytes) && bytes <= 8)
    return {H5Tget_sign(type) == H5T_SGN_NONE ? Kind::unsigned_integer : Kind::signed_integer,
            static_cast<int>(bytes), false};
  if (kind == H5T_ENUM && bytes == 1) return {Kind::unsigned_integer, 1, false};
  throw UserError(fmt::format("{}: expected integers or floating point numbers, found another type", where));
}

/// How the values lie in the file, where that is one of the ways in which computers hold numbers.
std::optional<StoredType> type_in_file(const Hdf5Handle& type) {
  using Kind = StoredType::Kind;
  struct Plain {
    hid_t type;
    StoredType stored;
  };
  const bool big = std::endian::native == std::endian::big;
  const std::array<Plain, 20> plain{{
      {H5T_STD_U8LE, {Kind::unsigned_integer, 1, false}},
      {H5T_STD_U8BE, {Kind::unsigned_integer, 1, false}},
      {H5T_STD_U16LE, {Kind::unsigned_integer, 2, big}},
      {H5T_STD_U16BE, {Kind::unsigned_integer, 2, !big}},
      {H5T_STD_U32LE, {Kind::unsigned_integer, 4, big}},
      {H5T_STD_U32BE, {Kind::unsigned_integer, 4, !big}},
      {H5T_STD_U64LE, {Kind::unsigned_integer, 8, big}},
      {H5T_STD_U64BE, {Kind::unsigned_integer, 8, !big}},
      {H5T_STD_I8LE, {Kind::signed_integer, 1, false}},
      {H5T_STD_I8BE, {Kind::signed_integer, 1, false}},
      {H5T_STD_I16LE, {Kind::signed_integer, 2, big}},
      {H5T_STD_I16BE, {Kind::signed_integer, 2, !big}},
      {H5T_STD_I32LE, {Kind::signed_integer, 4, big}},
      {H5T_STD_I32BE, {Kind::signed_integer, 4, !big}},
      {H5T_STD_I64LE, {Kind::signed_integer, 8, big}},
      {H5T_STD_I64BE, {Kind::signed_integer, 8, !big}},
      {H5T_IEEE_F32LE, {Kind::real, 4, big}},
      {H5T_IEEE_F32BE, {Kind::real, 4, !big}},
      {H5T_IEEE_F64LE, {Kind::real, 8, big}},
      {H5T_IEEE_F64BE, {Kind::real, 8, !big}},
  }};
  for (const Plain& one : plain)
    if (H5Tequal(type, one.type) > 0) return one.stored;
  return std::nullopt;
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
Hdf5Handle chunk_cache() {
  constexpr size_t kSlots = 100003, kBytes = size_t{128} << 20;
  Hdf5Handle list(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(list, kSlots, kBytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  return list;
}

/// A dataset, opened and looked at. Made, used and dropped within a session.
struct OpenDataset {
  std::shared_ptr<const InputFile> input;
  std::string where;  // "path:name"
  Hdf5Handle file, dataset;
  StoredType type;
  bool is_enum = false;
  std::vector<hsize_t> extents;

  OpenDataset(const std::string& path, std::string name)
      : input(std::make_shared<const InputFile>(path)), file(open_file(*input)) {
    if (name.empty()) name = only_dataset(file, path);
    where = path + ":" + name;
    refuse_external_links(file, path, name);
    dataset = Hdf5Handle(H5Dopen2(file, name.c_str(), chunk_cache()));
    if (!dataset) throw UserError(fmt::format("{}: expected a dataset, found something else", where));
    const Hdf5Handle properties(H5Dget_create_plist(dataset));
    refuse_foreign_storage(properties);
    refuse_missing_filters(properties);
    const Hdf5Handle file_type(H5Dget_type(dataset));
    type = stored_type(file_type, where);
    is_enum = H5Tget_class(file_type) == H5T_ENUM;
    read_shape();
  }

  Shape shape() const { return Shape(std::vector<int64_t>(extents.begin(), extents.end())); }

  /// The values' own place in the file, where they lie there one after the other as computers hold numbers.
  std::optional<std::pair<StoredType, int64_t>> plain_place() const {
    const Hdf5Handle properties(H5Dget_create_plist(dataset));
    const Hdf5Handle file_type(H5Dget_type(dataset));
    const auto plain = type_in_file(file_type);
    const haddr_t offset = H5Dget_offset(dataset);
    if (!plain || H5Pget_layout(properties) != H5D_CONTIGUOUS || offset == HADDR_UNDEF) return std::nullopt;
    return std::pair{*plain, static_cast<int64_t>(offset)};
  }

  void read_slab(int64_t first, int64_t count, void* dst) const {
    std::vector<hsize_t> start(extents.size(), 0), extent = extents;
    start[0] = static_cast<hsize_t>(first);
    extent[0] = static_cast<hsize_t>(count);
    const Hdf5Handle from(H5Dget_space(dataset));
    const Hdf5Handle to(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
    const Hdf5Handle enum_type(is_enum ? H5Dget_type(dataset) : -1);
    if (H5Sselect_hyperslab(from, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) >= 0 &&
        H5Dread(dataset, is_enum ? hid_t{enum_type} : memory_type(type), to, from, H5P_DEFAULT, dst) >= 0)
      return;
    if (hdf5_said("file read failed"))
      throw Error(
          fmt::format("{}: rows {} to {} could not be read from the disk", where, first, first + count - 1));
    throw UserError(
        fmt::format("{}: expected rows {} to {}, found data that cannot be read (cut short or damaged)",
                    where, first, first + count - 1));
  }

 private:
  void refuse_foreign_storage(const Hdf5Handle& properties) const {
    if (H5Pget_layout(properties) == H5D_VIRTUAL || H5Pget_external_count(properties) > 0)
      throw UserError(
          fmt::format("{}: expected data in the file itself, found a dataset kept in other files", where));
  }

  void refuse_missing_filters(const Hdf5Handle& properties) const {
    for (int i = 0; i < H5Pget_nfilters(properties); ++i) {
      unsigned flags = 0, config = 0;
      size_t values = 0;
      std::array<char, 64> name{};
      const H5Z_filter_t filter = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values,
                                                 nullptr, name.size() - 1, name.data(), &config);
      if (filter >= 0 && H5Zfilter_avail(filter) > 0) continue;
      throw UserError(fmt::format(
          "{}: expected data packed by deflate or not at all, found the filter {} ({}), which this "
          "libhdf5 does not have; write the file anew with compression='gzip'",
          where, filter, name[0] ? name.data() : "without a name"));
    }
  }

  void read_shape() {
    const Hdf5Handle space(H5Dget_space(dataset));
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 1)
      throw UserError(fmt::format("{}: expected an array of samples, found a single value", where));
    extents.resize(static_cast<size_t>(rank));
    H5Sget_simple_extent_dims(space, extents.data(), nullptr);
    check_shape(where, shape(), type.bytes);
    // Chunks that were never written take no place; but so much of nothing is damage, or nobody's data.
    constexpr int64_t kMuch = int64_t{1} << 26, kMostPacked = 2000;
    const int64_t bytes = shape().elements() * type.bytes;
    if (bytes > kMuch && bytes / kMostPacked > input->size())
      throw UserError(fmt::format("{}: expected data for its shape {}, found a file of {} bytes", where,
                                  shape().str(), input->size()));
  }
};

/// A dataset whose first axis counts the samples, read by libhdf5: packed, in chunks, or of unusual numbers.
class Hdf5Column final : public Column {
 public:
  explicit Hdf5Column(OpenDataset open) : open_(std::move(open)) {
    const Shape shape = open_.shape();
    spec_ = {open_.where, Shape(std::vector<int64_t>(shape.begin() + 1, shape.end())), open_.type.dtype()};
  }
  ~Hdf5Column() override {
    const Hdf5Session session;
    open_.dataset = Hdf5Handle();
    open_.file = Hdf5Handle();
  }

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return static_cast<int64_t>(open_.extents[0]); }
  bool in_memory() const override { return false; }
  /// libhdf5 takes what a file lost for zeros.
  void check() const override { open_.input->check_unchanged(); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    for_each_run(rows, [&](int64_t first, size_t place, int64_t count) {
      auto* out = static_cast<std::byte*>(dst) + place * row_bytes();
      const StoredType type = open_.type;
      const int64_t elements = count * row_elements();
      const auto raw =
          type.same_bytes() ? nullptr : allocate_bytes(static_cast<size_t>(elements * type.bytes));
      {
        const Hdf5Session session;
        open_.read_slab(first, count, raw ? raw.get() : out);
      }
      if (raw) decode_rows(open_.where, type, first * row_elements(), raw.get(), out, elements);
    });
  }

 private:
  OpenDataset open_;
  TensorSpec spec_;
};

struct Hdf5Options : ArrayNames {
  std::string file;
};

class Hdf5Reader final : public Reader {
 public:
  explicit Hdf5Reader(const Hdf5Options& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
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
  const Hdf5Session session;
  OpenDataset open(path, name);
  if (const auto place = open.plain_place())
    return rows_in_file(open.input, open.where, {place->first, open.shape()}, place->second);
  return std::make_shared<Hdf5Column>(std::move(open));
}

void add_hdf5(Registry<Reader>& table) {
  Schema<Hdf5Options> schema("Datasets of an HDF5 file whose first axis counts the samples; read by slices.");
  schema.example("{file: train.h5, input: images, target: labels}");
  schema.required("file", &Hdf5Options::file, "the file");
  table.add<Hdf5Reader>("hdf5", add_array_names(schema, "the dataset"));
}

}  // namespace dtrain
