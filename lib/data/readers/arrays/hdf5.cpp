// The hdf5 reader, which reads slices of the datasets of an HDF5 file.
#include <array>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "data/readers/arrays/array_file.h"
#include "data/readers/arrays/hdf5_dataset.h"
#include "data/readers/binding.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

/// Returns the type of the values after libhdf5 has read them. Booleans, which h5py stores as enumerations,
/// are read as unsigned bytes.
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
  throw UserError(fmt::format(
      "{}: expected integers or floating point numbers of at most 64 bits, found another type", where));
}

/// If the values in the file have a standard integer or IEEE float format, returns their type; else nullopt.
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

/// Returns the type to which libhdf5 converts the values when it reads them into memory.
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

/// A dataset of numbers.
struct NumberDataset : Hdf5Dataset {
  StoredType type;
  bool is_enum = false;

  NumberDataset(const std::string& path, const std::string& name) : Hdf5Dataset(path, name) {
    const Hdf5Handle file_type(H5Dget_type(dataset));
    type = stored_type(file_type, where);
    is_enum = H5Tget_class(file_type) == H5T_ENUM;
    check_storage(type.bytes);
  }

  /// If the values are contiguous in the file and type_in_file() knows their format, returns their type and
  /// their offset in the file. Otherwise returns nullopt.
  std::optional<std::pair<StoredType, int64_t>> plain_place() const {
    const Hdf5Handle properties(H5Dget_create_plist(dataset));
    const Hdf5Handle file_type(H5Dget_type(dataset));
    const auto plain = type_in_file(file_type);
    const haddr_t offset = H5Dget_offset(dataset);
    if (!plain || H5Pget_layout(properties) != H5D_CONTIGUOUS || offset == HADDR_UNDEF) return std::nullopt;
    return std::pair{*plain, static_cast<int64_t>(offset)};
  }

  void read_numbers(int64_t first, int64_t count, void* dst) const {
    const Hdf5Handle enum_type(is_enum ? H5Dget_type(dataset) : -1);
    read_slab(first, count, is_enum ? hid_t{enum_type} : memory_type(type), dst);
  }
};

/// A dataset that must be read with libhdf5, because it is compressed, chunked, or has an unusual number
/// format. Its first axis is the sample axis.
class Hdf5Column final : public Column {
 public:
  explicit Hdf5Column(NumberDataset open) : open_(std::move(open)) {
    const Shape shape = open_.shape();
    spec_ = {open_.where, Shape(std::vector<int64_t>(shape.begin() + 1, shape.end())), open_.type.dtype()};
  }
  ~Hdf5Column() override {
    const Hdf5Session session;
    open_.close();
  }

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return static_cast<int64_t>(open_.extents[0]); }
  bool in_memory() const override { return false; }
  /// Checks the file itself, because libhdf5 does not report a truncated file: it returns zeros for the
  /// missing part.
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
        open_.read_numbers(first, count, raw ? raw.get() : out);
      }
      if (raw) decode_rows(open_.where, type, first * row_elements(), raw.get(), out, elements);
    });
  }

 private:
  NumberDataset open_;
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
    ArrayNames::for_each_key(
        request, [&](const std::string& name) { columns.push_back(open_hdf5(path, name, Digits::all)); });
    return columns;
  }
  std::string why_no_windows(const WindowsOptions& windows) const override {
    return ArrayNames::why_no_windows(windows);
  }
  std::vector<std::string> files() const override { return {options_.file}; }

  /// Opens the datasets that have the same names as the datasets of the run. If the file is for predictions
  /// and lacks one of these datasets, returns nullopt.
  std::optional<SourceColumns> open_other(const std::string& path, FileFormat format, const TextOptions&,
                                          const ReadRequest& request) const override {
    if (format != FileFormat::hdf5) return std::nullopt;
    std::vector<std::string> names = options_.resolve(request);
    const size_t arrays = names.size();
    if (request.windows)
      for (const auto* key : {&request.windows->by, &request.windows->time})
        if (*key) names.push_back(**key);
    if (request.use == FileUse::prediction && !holds_datasets(path, names)) return std::nullopt;
    Columns columns;
    for (size_t i = 0; i < names.size(); ++i)
      columns.push_back(open_hdf5(path, names[i], i < arrays ? Digits::computed : Digits::all));
    return SourceColumns(std::move(columns));
  }

 private:
  Hdf5Options options_;
};

}  // namespace

std::shared_ptr<const Column> open_hdf5(const std::string& path, const std::string& name, Digits digits) {
  const Hdf5Session session;
  NumberDataset open(path, name);
  open.type.exact = digits == Digits::all;
  if (auto place = open.plain_place()) {
    place->first.exact = open.type.exact;
    return rows_in_file(open.input, open.where, {place->first, open.shape()}, place->second);
  }
  return std::make_shared<Hdf5Column>(std::move(open));
}

void add_hdf5(Registry<Reader>& table) {
  Schema<Hdf5Options> schema(
      "Datasets of an HDF5 file with the samples along their first axis. Only the slices that a batch needs "
      "are read.");
  schema.example("{file: train.h5, input: images, target: labels}");
  schema.required("file", &Hdf5Options::file, "path of the file");
  table.add<Hdf5Reader>("hdf5", add_array_names(schema, "the dataset"));
}

}  // namespace dtrain
