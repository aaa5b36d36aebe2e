#include "image/exif.h"

#include <cstddef>
#include <optional>

namespace dtrain {

namespace {

/// Reads integers in big-endian or little-endian byte order. Returns nullopt for offsets outside the data.
class TiffBytes {
 public:
  TiffBytes(std::span<const uint8_t> bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::optional<uint32_t> number(size_t offset, size_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes_[offset + (big_endian_ ? i : size - 1 - i)];
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const uint8_t> tiff) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3;
  constexpr size_t kEntryBytes = 12;
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 0;
  const TiffBytes bytes(tiff, tiff[0] == 'M');
  const auto directory = bytes.number(4, 4);
  const auto entries = directory ? bytes.number(*directory, 2) : std::nullopt;
  for (uint32_t i = 0; entries && i < *entries; ++i) {
    const size_t entry = size_t{*directory} + 2 + i * kEntryBytes;
    const auto tag = bytes.number(entry, 2), type = bytes.number(entry + 2, 2);
    const auto value = bytes.number(entry + 8, 2);
    if (!tag || !type || !value) return 0;
    if (*tag == kOrientation)
      return *type == kShort && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : 0;
  }
  return 0;
}

int xmp_orientation(std::string_view packet) {
  constexpr std::string_view kName = "tiff:Orientation";
  const size_t name = packet.find(kName);
  if (name == std::string_view::npos) return 0;
  packet.remove_prefix(name + kName.size());
  // Accepts both tiff:Orientation="6" and <tiff:Orientation>6</tiff:Orientation>.
  const size_t digit = packet.find_first_not_of("=>\"' \t\r\n");
  if (digit == 0 || digit == std::string_view::npos || packet[digit] < '1' || packet[digit] > '8') return 0;
  const std::string_view behind = packet.substr(digit + 1);
  if (behind.empty() || std::string_view("<\"' \t\r\n").find(behind[0]) == std::string_view::npos) return 0;
  return packet[digit] - '0';
}

}  // namespace dtrain
