#include "hdf5/hdf5_storage.h"

#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

namespace dtrain {

namespace {

struct Filter {
  H5Z_filter_t number;  // negative if the query failed
  std::string name;
};

/// Returns the filters in the order in which they are applied on writing.
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

/// Returns the size of a zlib stream after decompression. Returns nullopt if the stream is invalid. Stops
/// shortly after the size has exceeded `most`.
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

/// Returns the number of bytes that the filters before deflate add to each chunk. Returns nullopt if there is
/// not exactly one deflate filter or if another filter is unknown.
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

UserError why_not_opened(const std::string& path) {
  if (hdf5_said("open for write") || hdf5_said("unable to lock file, errno = 11"))
    return UserError(fmt::format("{}: another program has the file open for writing", path));
  if (hdf5_said("unable to lock file"))
    return UserError(
        fmt::format("{}: the file system does not support the locks that libhdf5 requires; set "
                    "HDF5_USE_FILE_LOCKING=FALSE if no program writes the file",
                    path));
  if (hdf5_said("truncated file"))
    return UserError(fmt::format("{}: expected a complete HDF5 file, found a truncated one", path));
  return UserError(fmt::format("{}: expected an HDF5 file, found another format or a damaged file", path));
}

void reject_links(hid_t group, const std::string& path, const std::string& name) {
  for (size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
    const std::string part = name.substr(0, end);
    H5L_info_t link;
    if (H5Lget_info(group, part.c_str(), &link, H5P_DEFAULT) < 0) return;
    if (link.type != H5L_TYPE_HARD)
      throw UserError(
          fmt::format("{}: expected a dataset or a group '{}', but this is a soft or external link; links "
                      "are not followed",
                      path, part));
    if (end == std::string::npos) return;
  }
}

void reject_foreign_storage(hid_t dataset, const std::string& where) {
  const Hdf5Handle properties(H5Dget_create_plist(dataset));
  if (H5Pget_layout(properties) == H5D_VIRTUAL || H5Pget_external_count(properties) > 0)
    throw UserError(fmt::format(
        "{}: the data of this dataset are stored in other files; only data in the file itself can be read",
        where));
  for (const auto& [number, name] : filters_of(properties)) {
    if (number >= 0 && H5Zfilter_avail(number) > 0) continue;
    throw UserError(
        fmt::format("{}: the data are stored with the filter {} ({}), which this libhdf5 does not have; "
                    "write the file again with compression='gzip' or without compression",
                    where, number, name.empty() ? "without a name" : name));
  }
}

void check_chunk_index(hid_t dataset, const std::string& where) {
  const Hdf5Handle properties(H5Dget_create_plist(dataset)), space(H5Dget_space(dataset));
  if (H5Pget_layout(properties) != H5D_CHUNKED) return;
  std::vector<hsize_t> chunk(H5S_MAX_RANK), extents(H5S_MAX_RANK);
  const int rank = H5Pget_chunk(properties, H5S_MAX_RANK, chunk.data());
  if (rank < 1 || H5Sget_simple_extent_dims(space, extents.data(), nullptr) != rank) return;
  hsize_t expected = 1;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i)
    if (__builtin_mul_overflow(expected, extents[i] / chunk[i] + (extents[i] % chunk[i] != 0), &expected))
      expected = HSIZE_UNDEF;
  hsize_t indexed = 0;
  if (H5Dget_num_chunks(dataset, space, &indexed) < 0)
    throw UserError(fmt::format("{}: the chunk index of this dataset is damaged", where));
  if (indexed < expected) {
    H5D_fill_value_t fill = H5D_FILL_VALUE_UNDEFINED;
    if (H5Pfill_value_defined(properties, &fill) >= 0 && fill == H5D_FILL_VALUE_USER_DEFINED) return;
    throw UserError(
        fmt::format("{}: the number of chunks of this dataset must be {}, but the file contains only {}; "
                    "either the other chunks were never written, or the file is damaged; if missing chunks "
                    "are intended, create the dataset with a fill value (h5py: fillvalue=0)",
                    where, expected, indexed));
  }
  // A damaged index may contain all chunks although some of them cannot be found by their coordinates.
  // Therefore each chunk is also looked up by its coordinates.
  hsize_t found = 0;
  std::vector<hsize_t> at(static_cast<size_t>(rank), 0);
  for (hsize_t i = 0; i < expected; ++i) {
    hsize_t bytes = 0;
    if (H5Dget_chunk_storage_size(dataset, at.data(), &bytes) >= 0 && bytes > 0) ++found;
    for (size_t axis = at.size(); axis-- > 0;) {
      at[axis] += chunk[axis];
      if (at[axis] < extents[axis]) break;
      at[axis] = 0;
    }
  }
  if (indexed != expected || found != expected)
    throw UserError(
        fmt::format("{}: the number of chunks of this dataset must be {}, but is {} in the chunk index and "
                    "{} in a search by coordinates; the chunk index is damaged",
                    where, expected, indexed, found));
}

void check_first_chunk(hid_t dataset, const std::string& where, int64_t file_bytes) {
  const Hdf5Handle type(H5Dget_type(dataset));
  const H5T_class_t kind = H5Tget_class(type);
  const Hdf5Handle properties(H5Dget_create_plist(dataset));
  const auto added = added_before_deflate(properties);
  const bool numbers = kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM;
  if (!numbers || !added || H5Pget_layout(properties) != H5D_CHUNKED) return;
  std::vector<hsize_t> chunk(H5S_MAX_RANK), origin(H5S_MAX_RANK, 0);
  const int rank = H5Pget_chunk(properties, H5S_MAX_RANK, chunk.data());
  if (rank < 0) return;
  chunk.resize(static_cast<size_t>(rank));
  size_t expected = H5Tget_size(type);
  for (const hsize_t extent : chunk) expected *= static_cast<size_t>(extent);
  expected += *added;

  unsigned left_out = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t bytes = 0;
  if (H5Dget_chunk_info_by_coord(dataset, origin.data(), &left_out, &address, &bytes) < 0 || left_out != 0 ||
      address == HADDR_UNDEF || static_cast<int64_t>(bytes) > file_bytes)
    return;
  std::vector<uint8_t> packed(static_cast<size_t>(bytes));
  uint32_t mask = 0;
  if (H5Dread_chunk(dataset, H5P_DEFAULT, origin.data(), &mask, packed.data()) < 0) return;
  if (const auto found = unpacked_bytes(packed, expected); found && *found != expected)
    throw UserError(
        fmt::format("{}: a chunk of this dataset must have {} bytes after decompression, but has {} bytes; "
                    "the file is damaged",
                    where, expected, *found));
}

}  // namespace dtrain
