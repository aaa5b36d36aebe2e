#include "checkpoint/reader/object.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "checkpoint/reader/btree.h"
#include "checkpoint/reader/fractal_heap.h"

namespace dtrain {

namespace {

using ByteSpan = std::span<const std::byte>;

constexpr size_t kMostAxes = 32;  // HDF5's limit

/// Location of the links or attributes of an object that do not fit into the object header. They are stored
/// in a heap, and a B-tree indexes them by name. Both members are addresses.
struct Elsewhere {
  uint64_t heap, names;
};

Elsewhere read_elsewhere(const Message* message, size_t order_bytes) {
  if (message == nullptr) return {kNoAddress, kNoAddress};
  Cursor cursor(message->data, "an information message");
  cursor.expect(0, "version");
  if (cursor.byte() & 1) cursor.skip(order_bytes);  // maximum creation index
  const uint64_t heap = cursor.address();
  return {heap, cursor.address()};
}

/// Calls `add` with each message in the heap. Each record of the B-tree contains the heap identifier of a
/// message, beginning at byte `id_at`.
template <class Add>
void read_from_heap(Image& image, const Elsewhere& elsewhere, RecordKind kind, size_t id_at, const Add& add) {
  if (elsewhere.heap == kNoAddress) return;
  FractalHeap heap(image, elsewhere.heap);
  for (const ByteSpan record : read_records(image, elsewhere.names, kind)) {
    Cursor cursor(record, "a record");
    cursor.skip(id_at);
    add(heap.object(cursor.take(heap.id_bytes())));
  }
}

Shape read_shape(ByteSpan dataspace, uint64_t most_elements, const std::string& path) {
  Cursor cursor(dataspace, "a dataspace");
  cursor.expect(2, "version");
  const size_t rank = cursor.byte();
  cursor.skip(1);  // flags: whether maximum extents are stored
  if (cursor.byte() > 1) refuse(path, "a shape", "a null dataspace");
  if (rank > kMostAxes) refuse(path, fmt::format("at most {} axes", kMostAxes), fmt::format("{} axes", rank));
  std::vector<int64_t> extents;
  uint64_t elements = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    const uint64_t extent = cursor.number(8);
    // This check also prevents an overflow of the product below.
    if (extent > most_elements / std::max<uint64_t>(elements, 1))
      refuse(path, "a shape whose data fit into the file", fmt::format("an axis with the extent {}", extent));
    elements *= extent;
    extents.push_back(static_cast<int64_t>(extent));
  }
  return Shape(std::move(extents));
}

/// HDF5's encoding of the types H5T_IEEE_F32LE, H5T_STD_I32LE and H5T_STD_U8LE. The first byte, which
/// contains the class and the version, is left out. The encoding contains flags, the size of the type, and
/// the positions and sizes of the fields of a number.
constexpr auto kFloat32 =
    std::to_array<uint8_t>({0x20, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0});
constexpr auto kInt32 = std::to_array<uint8_t>({0x08, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0});
constexpr auto kUInt8 = std::to_array<uint8_t>({0x00, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0});
constexpr unsigned kInteger = 0, kFloat = 1, kString = 3;  // classes of types

/// Returns the class of a type. The version in the same byte is ignored, because it does not matter for the
/// types that dtrain writes.
unsigned class_of(Cursor& type) {
  return type.byte() & 0x0Fu;
}

DType read_dtype(ByteSpan datatype, const std::string& path) {
  Cursor cursor(datatype, "a datatype");
  const unsigned type_class = class_of(cursor);
  const auto is = [&](unsigned wanted, const auto& parts) {
    if (type_class != wanted || cursor.left() < parts.size()) return false;
    const ByteSpan found = Cursor(cursor).take(parts.size());
    return std::equal(parts.begin(), parts.end(), found.begin(),
                      [](uint8_t a, std::byte b) { return std::byte{a} == b; });
  };
  if (is(kFloat, kFloat32)) return DType::float32;
  if (is(kInteger, kInt32)) return DType::int32;
  if (is(kInteger, kUInt8)) return DType::uint8;
  refuse(path, "little-endian values of the type float32, int32 or uint8", "values of another type");
}

}  // namespace

uint64_t root_address(Image& image) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  constexpr size_t kSuperblockBytes = 48;
  Cursor cursor(image.read_block(kSignature, 0, kSuperblockBytes), "the superblock");
  cursor.expect(2, "version");
  cursor.expect(8, "an address size (in bytes) of");
  cursor.expect(8, "a length size (in bytes) of");
  cursor.skip(1 + 3 * 8);  // flags; base address, extension address and end-of-file address
  return cursor.address();
}

Group::Group(Image& image, uint64_t address, std::string path) : path_(std::move(path)) {
  const ObjectHeader header(image, address);
  for (const Message& message : header.messages()) {
    if (message.kind == MessageKind::link) add_link(message.data);
    if (message.kind == MessageKind::attribute) add_attribute(message.data);
  }
  const Message* info = header.find(MessageKind::link_info);
  if (info == nullptr) refuse(path_, "a group", "something else");
  read_from_heap(image, read_elsewhere(info, 8), RecordKind::link_names, 4,
                 [&](ByteSpan link) { add_link(link); });
  read_from_heap(image, read_elsewhere(header.find(MessageKind::attribute_info), 2),
                 RecordKind::attribute_names, 0, [&](ByteSpan attribute) { add_attribute(attribute); });
}

void Group::add_link(ByteSpan message) {
  constexpr unsigned kNameWidth = 0x03, kOrder = 0x04, kType = 0x08, kCharacters = 0x10;  // flags
  Cursor cursor(message, "a link");
  cursor.expect(1, "version");
  const unsigned flags = cursor.byte();
  const uint8_t type = (flags & kType) ? cursor.byte() : 0;
  cursor.skip(((flags & kOrder) ? 8 : 0) + ((flags & kCharacters) ? 1 : 0));
  const std::string_view name = cursor.text(cursor.number(size_t{1} << (flags & kNameWidth)));
  if (type != 0) refuse(fmt::format("{}: {}", path_, name), "a group or dataset", "a soft or external link");
  links_.emplace(name, cursor.address());
}

void Group::add_attribute(ByteSpan message) {
  Cursor cursor(message, "an attribute");
  cursor.expect(3, "version");
  if (cursor.byte() != 0)
    refuse(path_, "an attribute that stores its own datatype", "an attribute with a shared datatype");
  const uint64_t name_bytes = cursor.number(2), type_bytes = cursor.number(2), space_bytes = cursor.number(2);
  cursor.skip(1);  // character encoding of the name
  const std::string_view name = cursor.text(name_bytes);
  const ByteSpan type = cursor.take(type_bytes), space = cursor.take(space_bytes);
  attributes_.emplace(name.substr(0, name.find('\0')), Attribute{type, space, cursor.take(cursor.left())});
}

std::optional<uint64_t> Group::find(std::string_view name) const {
  const auto found = links_.find(name);
  return found == links_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::vector<std::string>> Group::strings(std::string_view name) const {
  const auto found = attributes_.find(name);
  if (found == attributes_.end()) return std::nullopt;
  const auto& [type_bytes, space, data] = found->second;
  Cursor type(type_bytes, "a datatype");
  if (class_of(type) != kString)
    refuse(path_, fmt::format("fixed-length strings in the attribute {}", name), "values of another type");
  type.skip(3);  // padding and encoding
  const uint64_t width = type.number(4);
  const auto count = static_cast<uint64_t>(read_shape(space, data.size(), path_).elements());
  if (width == 0 || count > data.size() / width)
    refuse(path_, fmt::format("strings that fit into the data of the attribute {}", name),
           fmt::format("{} strings of {} bytes each", count, width));
  std::vector<std::string> strings;
  Cursor cursor(data, "an attribute");
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view padded = cursor.text(width);
    strings.emplace_back(padded.substr(0, padded.find('\0')));
  }
  return strings;
}

ContiguousArray read_dataset(Image& image, uint64_t address, const std::string& path, size_t alignment) {
  const ObjectHeader header(image, address);
  const Message* space = header.find(MessageKind::dataspace);
  const Message* type = header.find(MessageKind::datatype);
  const Message* layout = header.find(MessageKind::layout);
  if (!space || !type || !layout) refuse(path, "a dataset", "something else");
  Cursor cursor(layout->data, "a layout");
  const uint8_t version = cursor.byte(), kind = cursor.byte();
  constexpr uint8_t kContiguous = 1, kVirtual = 3;
  if (version < 3 || version > 4 || kind != kContiguous)
    refuse(path, "a contiguous dataset", kind == kVirtual ? "a virtual one" : "another layout");
  if (header.find(MessageKind::external_files))
    refuse(path, "an array whose data are stored in this file", "an array with external storage");
  if (header.find(MessageKind::filters)) refuse(path, "an array without filters", "an array with filters");
  ContiguousArray dataset{read_shape(space->data, image.size(), path), read_dtype(type->data, path), {}};
  const uint64_t bytes = static_cast<uint64_t>(dataset.shape.elements()) * bytes_of(dataset.dtype);
  if (bytes == 0) return dataset;
  const uint64_t offset = cursor.address();
  if (offset % alignment != 0 || offset > image.size() || bytes > image.size() - offset)
    refuse(path,
           fmt::format("{} bytes of data within the file, at an offset that is a multiple of {}", bytes,
                       alignment),
           fmt::format("data at offset {}", offset));
  dataset.data = image.read(offset, bytes);
  return dataset;
}

}  // namespace dtrain
