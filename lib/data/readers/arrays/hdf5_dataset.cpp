#include "data/readers/arrays/hdf5_dataset.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/stopwatch.h"
#include "config/diagnostics.h"
#include "data/loader/read_seconds.h"
#include "data/readers/arrays/array_file.h"
#include "hdf5/hdf5_storage.h"

namespace dtrain {

namespace {

/// Uses libhdf5 to open the file that `file` has already opened. The InputFile is opened first because its
/// error messages are clearer if something is wrong with the path.
Hdf5Handle open_file(const InputFile& file) {
  Hdf5Handle opened(H5Fopen(file.path().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (opened) {
    void* descriptor = nullptr;
    if (H5Fget_vfd_handle(opened, H5P_DEFAULT, &descriptor) >= 0 && descriptor &&
        !file.is_same(*static_cast<const int*>(descriptor)))
      throw Error(fmt::format("{}: the file was changed while it was opened", file.path()));
    return opened;
  }
  throw why_not_opened(file.path());
}

/// Returns the names of the datasets at the top level of the file.
std::vector<std::string> datasets_at_top(const Hdf5Handle& file) {
  std::vector<std::string> names;
  const auto collect = [](hid_t group, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    if (link->type != H5L_TYPE_HARD) return 0;
    const Hdf5Handle object(H5Oopen(group, name, H5P_DEFAULT));
    if (object && H5Iget_type(object) == H5I_DATASET)
      static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names);
  return names;
}

/// Returns the path of the only dataset at the top level of the file.
std::string only_dataset(const Hdf5Handle& file, const std::string& path) {
  const std::vector<std::string> names = datasets_at_top(file);
  if (names.size() != 1)
    throw UserError(
        fmt::format("{}: expected exactly one dataset at the top level of the file, or datasets with the "
                    "names of the model's inputs, found {}",
                    path, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  return names.front();
}

/// Returns the first part of the path that does not exist; nullopt if all of it exists.
std::optional<std::string> missing_part(const Hdf5Handle& file, const std::string& name) {
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    const std::string part = name.substr(0, end);
    if (H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0) return part;
    if (end == std::string::npos) return std::nullopt;
  }
}

/// Returns access properties with a large chunk cache. Reading rows in random order accesses every chunk many
/// times. If all chunks fit into the cache, each chunk is decompressed at most once per epoch, not once per
/// row.
Hdf5Handle chunk_cache() {
  constexpr size_t kSlots = 100003, kBytes = size_t{128} << 20;
  Hdf5Handle list(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_chunk_cache(list, kSlots, kBytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  return list;
}

}  // namespace

bool holds_datasets(const std::string& path, const std::vector<std::string>& names) {
  const Hdf5Session session;
  const InputFile input(path);
  const Hdf5Handle file = open_file(input);
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return !missing_part(file, name); });
}

Hdf5Dataset::Hdf5Dataset(const std::string& path, std::string name)
    : input(std::make_shared<const InputFile>(path)), file(open_file(*input)) {
  if (name.empty()) name = only_dataset(file, path);
  where = path + ":" + name;
  reject_links(file, path, name);
  if (const auto part = missing_part(file, name))
    throw UserError(fmt::format("{}: expected a dataset '{}', but '{}' does not exist{}", path, name, *part,
                                suggestion(*part, datasets_at_top(file))));
  dataset = Hdf5Handle(H5Dopen2(file, name.c_str(), chunk_cache()));
  if (!dataset)
    throw UserError(fmt::format(
        "{}: expected a dataset, found another object (such as a group) or a damaged dataset", where));
  const Hdf5Handle space(H5Dget_space(dataset));
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 1) throw UserError(fmt::format("{}: expected an array of samples, found a single value", where));
  extents.resize(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
}

void Hdf5Dataset::check_storage(int element_bytes) const {
  reject_foreign_storage(dataset, where);
  check_shape(where, shape(), element_bytes);
  check_first_chunk(dataset, where, input->size());
  check_chunk_index(dataset, where);
  // Chunks that were never written take no space in the file. But a large dataset in which almost no
  // chunks were written is damaged or empty.
  constexpr int64_t kMuch = int64_t{1} << 26, kMostPacked = 2000;
  const int64_t bytes = shape().elements() * element_bytes;
  if (bytes > kMuch && bytes / kMostPacked > input->size())
    throw UserError(
        fmt::format("{}: the data of a dataset of shape {} cannot fit into a file of {} bytes; the file is "
                    "damaged, or the dataset was never written",
                    where, shape().str(), input->size()));
}

void Hdf5Dataset::read_slab(int64_t first, int64_t count, hid_t type, void* dst) const {
  const Stopwatch stopwatch(read_seconds_of_thread().files);
  std::vector<hsize_t> start(extents.size(), 0), extent = extents;
  start[0] = static_cast<hsize_t>(first);
  extent[0] = static_cast<hsize_t>(count);
  const Hdf5Handle from(H5Dget_space(dataset));
  const Hdf5Handle to(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
  if (H5Sselect_hyperslab(from, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) >= 0 &&
      H5Dread(dataset, type, to, from, H5P_DEFAULT, dst) >= 0)
    return;
  if (hdf5_said("file read failed"))
    throw Error(
        fmt::format("{}: rows {} to {} could not be read from the disk", where, first, first + count - 1));
  throw UserError(fmt::format("{}: rows {} to {} cannot be read, because the data is truncated or damaged",
                              where, first, first + count - 1));
}

void Hdf5Dataset::close() {
  dataset = Hdf5Handle();
  file = Hdf5Handle();
}

}  // namespace dtrain
