#include "data/files/array_writer.h"

#include <bit>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/new_file.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);  // the file headers declare little-endian data

/// Writes files in which each array is contiguous. The header is written first, and then the rows, each at
/// its offset.
class RawWriter final : public ArrayWriter {
 public:
  /// `write_header` returns the byte offset of each array's data.
  template <class WriteHeader>
  RawWriter(const std::string& path, WriteHeader write_header) : file_(path), next_(write_header(file_)) {}

  void append(std::span<const View> arrays) override {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const View& array = arrays[i];
      std::vector<float> narrow;
      if (array.dtype == DType::float64)
        narrow.assign(array.as<double>(), array.as<double>() + array.elements());
      const size_t bytes = static_cast<size_t>(array.elements()) * sizeof(float);
      file_.write(next_[i], narrow.empty() ? array.data : narrow.data(), bytes);
      next_[i] += static_cast<int64_t>(bytes);
    }
  }
  void finish() override { file_.finish(); }

 private:
  NewFile file_;
  std::vector<int64_t> next_;
};

/// Writes a .npy header of version 1.0. It consists of the magic string, the length of the rest, and a Python
/// literal, which is padded so that the data starts at a multiple of 64 bytes. Returns the offset of the
/// data.
std::vector<int64_t> write_npy_header(NewFile& file, const TensorSpec& array, int64_t rows) {
  std::string shape = fmt::format("{},", rows);
  for (const int64_t extent : array.shape) shape += fmt::format(" {},", extent);
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr size_t kFixed = 10, kAlignment = 64;
  text.append(kAlignment - (kFixed + text.size() + 1) % kAlignment, ' ').append("\n");
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  header += text;
  file.write(0, header.data(), header.size());
  return {static_cast<int64_t>(header.size())};
}

/// Creates the datasets with libhdf5, closes the file and returns the offset of each dataset. The rows are
/// then written without libhdf5, because libhdf5 fails to recover if the disk becomes full during a write.
std::vector<int64_t> write_hdf5_layout(NewFile& file, const std::vector<TensorSpec>& arrays, int64_t rows) {
  const Hdf5Session session;
  const auto check = [&](auto result) {
    if (result < 0)
      throw Error(
          fmt::format("{}: could not be written by the HDF5 library; is the disk full?", file.shown()));
    return result;
  };
  const Hdf5Handle access(check(H5Pcreate(H5P_FILE_ACCESS)));
  check(H5Pset_file_locking(access, false, true));  // NewFile holds its own lock on the file
  Hdf5Handle hdf5(check(H5Fcreate(file.temporary().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access)));
  const Hdf5Handle storage(check(H5Pcreate(H5P_DATASET_CREATE)));
  check(H5Pset_alloc_time(storage, H5D_ALLOC_TIME_EARLY));
  check(H5Pset_fill_time(storage, H5D_FILL_TIME_NEVER));
  const Hdf5Handle groups(check(H5Pcreate(H5P_LINK_CREATE)));
  check(H5Pset_create_intermediate_group(groups, 1));
  std::vector<int64_t> offsets;
  for (const TensorSpec& array : arrays) {
    const Shape shape = array.shape.prepended(rows);
    const std::vector<hsize_t> extents(shape.begin(), shape.end());
    const Hdf5Handle space(
        check(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr)));
    const char* name = arrays.size() == 1 ? "predictions" : array.name.c_str();
    const Hdf5Handle dataset(
        check(H5Dcreate2(hdf5, name, H5T_IEEE_F32LE, space, groups, storage, H5P_DEFAULT)));
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF && shape.elements() > 0) check(-1);
    offsets.push_back(static_cast<int64_t>(offset));
  }
  check(H5Fclose(hdf5.release()));
  return offsets;
}

}  // namespace

bool is_array_file(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  return ending == ".h5" || ending == ".hdf5" || ending == ".npy";
}

std::unique_ptr<ArrayWriter> open_array_writer(const std::string& path, const std::vector<TensorSpec>& arrays,
                                               int64_t rows) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".h5" || ending == ".hdf5")
    return std::make_unique<RawWriter>(path,
                                       [&](NewFile& file) { return write_hdf5_layout(file, arrays, rows); });
  if (ending != ".npy")
    throw UserError(
        fmt::format("{}: expected a name that ends in .h5, .npy, .csv or .jsonl, or in / for a folder of "
                    "images, found {}",
                    path, ending.empty() ? "no extension" : fmt::format("'{}'", ending)));
  if (arrays.size() != 1)
    throw UserError(
        fmt::format("{}: expected a name that ends in .h5, .csv or .jsonl, because the model has {} outputs; "
                    ".npy holds one array only",
                    path, arrays.size()));
  return std::make_unique<RawWriter>(path,
                                     [&](NewFile& file) { return write_npy_header(file, arrays[0], rows); });
}

}  // namespace dtrain
