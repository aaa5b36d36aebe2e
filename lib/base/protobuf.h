// Protocol buffers' wire format: a message is its fields, one after the other, and a field is its number and
// wire type, then its value (protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dtrain {

enum class ProtoWire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Each function gives the bytes of one field.

/// A string, bytes, or another message.
std::string proto_bytes(int field, std::string_view value);
/// The field's key and the length of a value whose bytes the caller writes behind it.
std::string proto_bytes_head(int field, uint64_t length);
std::string proto_varint(int field, int64_t value);
std::string proto_double(int field, double value);
/// Numbers beyond float32's range become infinite.
std::string proto_float(int field, double value);
std::string proto_packed(int field, std::span<const double> values);

/// Takes a varint off the front; false if the bytes end before it does.
bool take_varint(std::string_view& bytes, uint64_t& value);

/// The bytes of an unsigned integer, the least significant first.
template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}
/// The number of up to 8 such bytes.
uint64_t read_little_endian(std::string_view bytes);

}  // namespace dtrain
