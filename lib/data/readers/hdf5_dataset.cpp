#include "data/readers/hdf5_dataset.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <isa-l/igzip_lib.h>

#include "base/error.h"
#include "base/stopwatch.h"
#include "data/read_seconds.h"
#include "data/readers/array_file.h"

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

/// Whether each step of the path is there.
bool has_path(const Hdf5Handle& file, const std::string& name) {
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    if (H5Lexists(file, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) return true;
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

void refuse_foreign_storage(const std::string& where, const Hdf5Handle& properties) {
  if (H5Pget_layout(properties) == H5D_VIRTUAL || H5Pget_external_count(properties) > 0)
    throw UserError(
        fmt::format("{}: expected data in the file itself, found a dataset kept in other files", where));
}

struct Filter {
  H5Z_filter_t number;  // negative: it could not be asked for
  std::string name;
};

/// In the order in which they are applied to a chunk that is written.
std::vector<Filter> filters_of(const Hdf5Handle& properties) {
  std::vector<Filter> filters;
  for (int i = 0; i < H5Pget_nfilters(properties); ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    std::array<char, 64> name{};
    const H5Z_filter_t number = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values, nullptr,
                                               name.size() - 1, name.data(), &config);
    filters.push_back({number, name.data()});
  }
  return filters;
}

void refuse_missing_filters(const std::string& where, const Hdf5Handle& properties) {
  for (const auto& [number, name] : filters_of(properties)) {
    if (number >= 0 && H5Zfilter_avail(number) > 0) continue;
    throw UserError(
        fmt::format("{}: expected data packed by deflate or not at all, found the filter {} ({}), which this "
                    "libhdf5 does not have; write the file anew with compression='gzip'",
                    where, number, name.empty() ? "without a name" : name));
  }
}

/// What a zlib stream unpacks to, counted no further than a little past `most`; nothing for what is none.
std::optional<size_t> unpacked_bytes(std::vector<uint8_t>& packed, size_t most) {
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  state.next_in = packed.data();
  state.avail_in = static_cast<uint32_t>(packed.size());
  std::vector<uint8_t> room(size_t{1} << 16);
  size_t bytes = 0;
  while (bytes <= most) {
    state.next_out = room.data();
    state.avail_out = static_cast<uint32_t>(room.size());
    if (isal_inflate(&state) != ISAL_DECOMP_OK) return std::nullopt;
    const size_t done = room.size() - state.avail_out;
    bytes += done;
    if (state.block_state == ISAL_BLOCK_FINISH) break;
    if (done == 0) return std::nullopt;
  }
  return bytes;
}

/// By how many bytes the filters ahead of deflate lengthen a chunk; nothing where the only deflate is not
/// among filters that are known.
std::optional<size_t> added_before_deflate(const Hdf5Handle& properties) {
  std::optional<size_t> added;
  size_t checksums = 0;
  for (const Filter& filter : filters_of(properties)) {
    if (filter.number == H5Z_FILTER_FLETCHER32) {
      checksums += 4;
    } else if (filter.number == H5Z_FILTER_DEFLATE && !added) {
      added = checksums;
    } else if (filter.number != H5Z_FILTER_SHUFFLE) {
      return std::nullopt;
    }
  }
  return added;
}

}  // namespace

/// Where a packed chunk of numbers holds less than a chunk, libhdf5 gives what lies behind it in memory for
/// the rest. The extents of the chunks may be damaged, which the first of them shows.
void Hdf5Dataset::check_first_chunk(const Hdf5Handle& properties) const {
  const Hdf5Handle type(H5Dget_type(dataset));
  const H5T_class_t kind = H5Tget_class(type);
  const auto added = added_before_deflate(properties);
  const bool numbers = kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM;
  if (!numbers || !added || H5Pget_layout(properties) != H5D_CHUNKED) return;
  std::vector<hsize_t> chunk(extents.size()), origin(extents.size(), 0);
  if (H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data()) < 0) return;
  size_t expected = H5Tget_size(type);
  for (const hsize_t extent : chunk) expected *= static_cast<size_t>(extent);
  expected += *added;

  unsigned left_out = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  if (H5Dget_chunk_info_by_coord(dataset, origin.data(), &left_out, &address, &bytes) < 0 || left_out != 0 ||
      address == HADDR_UNDEF || static_cast<int64_t>(bytes) > input->size())
    return;
  std::vector<uint8_t> packed(static_cast<size_t>(bytes));
  uint32_t mask = 0;
  if (H5Dread_chunk(dataset, H5P_DEFAULT, origin.data(), &mask, packed.data()) < 0) return;
  if (const auto found = unpacked_bytes(packed, expected); found && *found != expected)
    throw UserError(
        fmt::format("{}: expected chunks of {} bytes, as its extents say, found one of {} (damaged)", where,
                    expected, *found));
}

bool holds_datasets(const std::string& path, const std::vector<std::string>& names) {
  const Hdf5Session session;
  const InputFile input(path);
  const Hdf5Handle file = open_file(input);
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return has_path(file, name); });
}

Hdf5Dataset::Hdf5Dataset(const std::string& path, std::string name)
    : input(std::make_shared<const InputFile>(path)), file(open_file(*input)) {
  if (name.empty()) name = only_dataset(file, path);
  where = path + ":" + name;
  refuse_external_links(file, path, name);
  dataset = Hdf5Handle(H5Dopen2(file, name.c_str(), chunk_cache()));
  if (!dataset) throw UserError(fmt::format("{}: expected a dataset, found something else", where));
  const Hdf5Handle space(H5Dget_space(dataset));
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 1) throw UserError(fmt::format("{}: expected an array of samples, found a single value", where));
  extents.resize(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
}

void Hdf5Dataset::check_storage(int element_bytes) const {
  const Hdf5Handle properties(H5Dget_create_plist(dataset));
  refuse_foreign_storage(where, properties);
  refuse_missing_filters(where, properties);
  check_shape(where, shape(), element_bytes);
  check_first_chunk(properties);
  // Chunks that were never written take no place; but so much of nothing is damage, or nobody's data.
  constexpr int64_t kMuch = int64_t{1} << 26, kMostPacked = 2000;
  const int64_t bytes = shape().elements() * element_bytes;
  if (bytes > kMuch && bytes / kMostPacked > input->size())
    throw UserError(fmt::format("{}: expected data for its shape {}, found a file of {} bytes", where,
                                shape().str(), input->size()));
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
  throw UserError(
      fmt::format("{}: expected rows {} to {}, found data that cannot be read (cut short or damaged)", where,
                  first, first + count - 1));
}

void Hdf5Dataset::close() {
  dataset = Hdf5Handle();
  file = Hdf5Handle();
}

}  // namespace dtrain
