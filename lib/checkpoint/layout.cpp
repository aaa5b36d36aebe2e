#include "checkpoint/layout.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/foreign_file.h"

namespace dtrain {

namespace {
constexpr std::string_view kMagic = "dtrain checkpoint\n";

std::string header_of(uint64_t format, size_t bytes, uint64_t hash) {
  std::string text = fmt::format("{}format {}\nbytes {}\nchecksum {:016x}\n", kMagic, format, bytes, hash);
  text.resize(kHeaderBytes);
  return text;
}

/// Returns the value of a header line such as "bytes 123"; 0 if the line is missing.
uint64_t field(std::string_view header, std::string_view name, int base) {
  const size_t at = header.find(fmt::format("\n{} ", name));
  uint64_t value = 0;
  if (at != std::string_view::npos)
    std::from_chars(header.data() + at + name.size() + 2, header.data() + header.size(), value, base);
  return value;
}
}  // namespace

std::string make_header(Parts image) {
  size_t bytes = 0;
  for (const auto part : image) bytes += part.size();
  return header_of(kFormat, bytes, checksum(image));
}

bool begins_as_checkpoint(const Location& file) {
  return first_bytes(file, kMagic.size()) == kMagic;
}

int verify_header(const std::string& path, std::span<const std::byte> file) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    throw UserError(fmt::format("{}: expected {}, found {}", path, expected, found));
  };
  const std::string_view header(reinterpret_cast<const char*>(file.data()),
                                std::min(file.size(), kHeaderBytes));
  if (!header.starts_with(kMagic)) refuse("a checkpoint of dtrain", describe_file(path));
  if (header.size() < kHeaderBytes)
    refuse(fmt::format("a header of {} bytes", kHeaderBytes),
           fmt::format("{} bytes; the file is truncated", header.size()));
  const uint64_t format = field(header, "format", 10);
  if (format < 1 || format > kFormat)
    refuse(fmt::format("a format version from 1 to {}", kFormat),
           fmt::format("version {}{}", format,
                       format > kFormat ? "; the file was written by a later version of dtrain" : ""));
  const auto image = file.subspan(kHeaderBytes);
  if (const uint64_t bytes = field(header, "bytes", 10); bytes != image.size())
    refuse(fmt::format("{} bytes after the header", bytes),
           fmt::format("{} bytes; the file is {}", image.size(),
                       image.size() < bytes ? "cut short" : "too long"));
  const uint64_t hash = checksum({&image, 1});
  if (const uint64_t expected = field(header, "checksum", 16); expected != hash)
    refuse(fmt::format("the checksum {:016x}", expected), fmt::format("{:016x}; the file is damaged", hash));
  if (header != header_of(format, image.size(), hash))
    refuse("a header that matches the content of the file", "a damaged header");
  return static_cast<int>(format);
}

}  // namespace dtrain
