#include "hdf5/hdf5_heap.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/cursor.h"

namespace dtrain {

namespace {

/// Converts references to variable-length values to opaque elements of the same size. The bytes are not
/// changed. (This is a conversion function of H5T.)
herr_t as_stored(hid_t from, hid_t to, H5T_cdata_t* data, size_t, size_t, size_t, void*, void*, hid_t) {
  if (data->command != H5T_CONV_INIT) return 0;
  data->need_bkg = H5T_BKG_NO;
  return H5Tget_size(from) == H5Tget_size(to) ? 0 : -1;
}

/// Overwrites references to variable-length values with zeros, which represent an empty value both in files
/// and in memory. (This is a conversion function of H5T.)
herr_t as_empty(hid_t, hid_t to, H5T_cdata_t* data, size_t count, size_t stride, size_t, void* values, void*,
                hid_t) {
  if (data->command == H5T_CONV_INIT) data->need_bkg = H5T_BKG_NO;
  if (data->command != H5T_CONV_CONV) return 0;
  const size_t bytes = H5Tget_size(to);
  for (size_t i = 0; i < count; ++i)
    std::memset(static_cast<char*>(values) + i * (stride ? stride : bytes), 0, bytes);
  return 0;
}

/// Reads small pieces of a file in ascending order. Holds one block of the file in memory.
class Blocks {
 public:
  Blocks(const ReadAt& read, uint64_t file_bytes) : read_(read), file_bytes_(file_bytes) {}

  /// Returns `bytes` bytes at `offset`. They must be within the file and not be more than a block.
  std::span<const std::byte> at(uint64_t offset, size_t bytes) {
    if (offset < begin_ || offset + bytes > begin_ + held_) {
      begin_ = offset;
      held_ = static_cast<size_t>(std::min<uint64_t>(block_.size(), file_bytes_ - offset));
      read_(static_cast<int64_t>(begin_), block_.data(), held_);
    }
    return std::span(block_).subspan(static_cast<size_t>(offset - begin_), bytes);
  }

 private:
  const ReadAt& read_;
  uint64_t file_bytes_, begin_ = 0;
  size_t held_ = 0;
  std::array<std::byte, 4096> block_{};  // 4096 is the minimum size of the collections that libhdf5 writes
};

/// Rounds up to a multiple of 8 bytes, the alignment of headers and objects in a heap.
uint64_t padded(uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

}  // namespace

Hdf5Conversion::Hdf5Conversion(const char* name, hid_t from, hid_t to, H5T_conv_t convert)
    : name_(name), convert_(convert) {
  checked(H5Tregister(H5T_PERS_SOFT, name, from, to, convert), "register a conversion");
}

Hdf5Conversion::~Hdf5Conversion() {
  // The types are not passed to this call. If they were passed, libhdf5 would remove only the conversion
  // between exactly these two types. The conversions that libhdf5 has derived from it for other types of the
  // same classes would remain registered.
  H5Tunregister(H5T_PERS_SOFT, name_, H5I_INVALID_HID, H5I_INVALID_HID, convert_);
}

Hdf5References::Hdf5References()
    : variable_(H5Tvlen_create(H5T_NATIVE_UINT8), "create a type"),
      opaque_(H5Tcreate(H5T_OPAQUE, 1), "create a type"),
      as_stored_("references as stored", variable_, opaque_, as_stored),
      as_empty_("references as empty", variable_, variable_, as_empty) {}

Hdf5Heap::Hdf5Heap(hid_t file, const std::string& path, int64_t file_bytes, ReadAt read)
    : file_bytes_(static_cast<uint64_t>(file_bytes)), read_(std::move(read)) {
  const Hdf5Handle properties(H5Fget_create_plist(file), "read the properties of the file");
  hsize_t user_block = 0;
  checked(H5Pget_userblock(properties, &user_block), "read the properties of the file");
  checked(H5Pget_sizes(properties, &address_bytes_, &length_bytes_), "read the properties of the file");
  if (address_bytes_ > 8 || length_bytes_ > 8)
    refuse(path, "an HDF5 file with addresses and lengths of at most 8 bytes",
           fmt::format("{} and {} bytes", address_bytes_, length_bytes_));
  base_ = std::min<uint64_t>(user_block, file_bytes_);
}

size_t Hdf5Heap::reference_bytes() const {
  return 4 + address_bytes_ + 4;
}

Hdf5Handle Hdf5Heap::reference_type() const {
  return Hdf5Handle(H5Tcreate(H5T_OPAQUE, reference_bytes()), "create a type");
}

Hdf5Heap::Place Hdf5Heap::find(std::span<const std::byte> reference, const std::string& where) const {
  // The length is a number of elements. All arrays that dtrain reads have elements of one byte, so it is also
  // the number of bytes.
  Cursor parts(reference, "reference");
  const uint64_t length = parts.number(4), address = parts.number(address_bytes_), wanted = parts.number(4);
  if (length == 0 || address == 0) return {0, 0};

  const uint64_t collection_header = padded(4 + 1 + 3 + length_bytes_);
  if (const uint64_t room = file_bytes_ - base_; address > room || room - address < collection_header)
    refuse(where,
           fmt::format("a reference to a global heap collection within the file ({} bytes)", file_bytes_),
           fmt::format("a reference to byte {}", address));
  const uint64_t begin = base_ + address;
  Blocks blocks(read_, file_bytes_);
  Cursor header(blocks.at(begin, collection_header), "global heap collection");
  if (header.text(4) != "GCOL" || header.byte() != 1)
    refuse(where, fmt::format("a global heap collection (GCOL, version 1) at byte {}", begin),
           "something else");
  header.skip(3);
  const uint64_t size = header.number(length_bytes_);
  if (size < collection_header || size > file_bytes_ - begin)
    refuse(where, fmt::format("a global heap collection that ends within the file ({} bytes)", file_bytes_),
           fmt::format("a collection of {} bytes at byte {}", size, begin));

  const uint64_t end = begin + size, object_header = padded(2 + 2 + 4 + length_bytes_);
  uint64_t at = begin + collection_header;
  constexpr int kMostObjects = 65536;  // object indices have 16 bits
  for (int i = 0; i <= kMostObjects && at < end && end - at >= object_header; ++i) {
    Cursor object(blocks.at(at, object_header), "global heap object");
    const uint64_t number = object.number(2);
    object.skip(2 + 4);
    const uint64_t bytes = object.number(length_bytes_), room = end - at - object_header;
    // The size of free space includes its header. The size of an object includes neither its header nor its
    // padding.
    const bool is_free = number == 0;
    if (is_free ? bytes < object_header || bytes > end - at : bytes > room)
      refuse(
          where,
          fmt::format(
              "an object or free space of a valid size in the global heap collection of {} bytes at byte {}",
              size, begin),
          fmt::format("{} of {} bytes at byte {}", is_free ? "free space" : "an object", bytes, at));
    if (number == wanted && !is_free) {
      if (bytes != length)
        refuse(where, fmt::format("an object of {} bytes (the length in the reference)", length),
               fmt::format("an object of {} bytes at byte {}", bytes, at));
      return {static_cast<int64_t>(at + object_header), static_cast<int64_t>(bytes)};
    }
    at += is_free ? bytes : object_header + padded(bytes);
  }
  refuse(where, fmt::format("object {} in the global heap collection at byte {}", wanted, begin), "none");
}

std::string Hdf5Heap::text(std::span<const std::byte> reference, const std::string& where) const {
  const Place place = find(reference, where);
  std::string text(static_cast<size_t>(place.bytes), '\0');
  if (!text.empty()) read_(place.offset, text.data(), text.size());
  return text;
}

}  // namespace dtrain
