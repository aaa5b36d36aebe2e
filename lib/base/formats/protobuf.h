// The Protocol Buffers wire format: a message is a sequence of fields, and a field is its number and wire
// type followed by its value (protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dtrain {

/// The wire type of a field. The numbers are defined by the format.
enum class ProtoWire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// The functions proto_*() return the encoded bytes of one field.

/// Encodes a length-delimited field: a string, bytes or a nested message.
std::string proto_bytes(int field, std::string_view value);
/// Encodes the field's key and the length of its value. The caller appends the bytes of the value.
std::string proto_bytes_head(int field, uint64_t length);
std::string proto_varint(int field, int64_t value);
std::string proto_double(int field, double value);
/// Encodes the number as float32. Numbers beyond its range become infinite.
std::string proto_float(int field, double value);
/// Encodes an array of doubles as one packed repeated field.
std::string proto_packed(int field, std::span<const double> values);

/// Removes a varint from the front of `bytes` and sets `value` to it. Returns false if the bytes end before
/// the varint does.
bool take_varint(std::string_view& bytes, uint64_t& value);

/// Returns the bytes of an unsigned integer, least significant first.
template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}
/// Decodes an unsigned integer of up to 8 bytes, least significant byte first.
uint64_t read_little_endian(std::string_view bytes);

}  // namespace dtrain
