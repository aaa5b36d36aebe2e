#include "base/formats/protobuf.h"

#include <bit>
#include <cmath>
#include <limits>

namespace dtrain {

namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(int field, ProtoWire wire) {
  return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

std::string fixed(double value) {
  return little_endian(std::bit_cast<uint64_t>(value));
}

}  // namespace

std::string proto_bytes_head(int field, uint64_t length) {
  return key(field, ProtoWire::bytes) + varint(length);
}

std::string proto_bytes(int field, std::string_view value) {
  return proto_bytes_head(field, value.size()) + std::string(value);
}

std::string proto_varint(int field, int64_t value) {
  return key(field, ProtoWire::varint) + varint(static_cast<uint64_t>(value));
}

std::string proto_double(int field, double value) {
  return key(field, ProtoWire::fixed64) + fixed(value);
}

std::string proto_float(int field, double value) {
  // Converting a double outside float32's range is undefined behavior.
  const double most = std::numeric_limits<float>::max();
  const float narrow = std::abs(value) > most
                           ? std::copysign(HUGE_VALF, static_cast<float>(value < 0 ? -1 : 1))
                           : static_cast<float>(value);
  return key(field, ProtoWire::fixed32) + little_endian(std::bit_cast<uint32_t>(narrow));
}

std::string proto_packed(int field, std::span<const double> values) {
  std::string packed;
  for (const double value : values) packed += fixed(value);
  return proto_bytes(field, packed);
}

bool take_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

uint64_t read_little_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    number |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return number;
}

}  // namespace dtrain
