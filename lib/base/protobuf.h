// The Protocol Buffers wire format: a message is a sequence of fields, and a field is its number and wire
// type followed by its value (protobuf.dev/programming-guides/encoding).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dtrain {

enum class ProtoWire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Each function returns the encoded bytes of one field.

/// Encodes a string, bytes or a nested message.
std::string proto_bytes(int field, std::string_view value);
/// Encodes the key and length of a value; the caller writes the value's bytes after it.
std::string proto_bytes_head(int field, uint64_t length);
std::string proto_varint(int field, int64_t value);
std::string proto_double(int field, double value);
/// Numbers beyond float32's range become infinite.
std::string proto_float(int field, double value);
std::string proto_packed(int field, std::span<const double> values);

/// Takes a varint off the front. Returns false if the bytes end too early.
bool take_varint(std::string_view& bytes, uint64_t& value);

/// Returns the bytes of an unsigned integer, least significant first.
template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}
/// Returns the number encoded by up to 8 such bytes.
uint64_t read_little_endian(std::string_view bytes);

}  // namespace dtrain
