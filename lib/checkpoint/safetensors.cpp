#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/formats/protobuf.h"
#include "base/half.h"
#include "base/json.h"
#include "base/location.h"

namespace dtrain {

namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMostHeader = 100'000'000;  // limit of the safetensors library

/// Returns the number of bytes per element; 0 if safetensors has no such type.
int64_t element_bytes(std::string_view type) {
  struct Type {
    std::string_view name;
    int64_t bytes;
  };
  static constexpr Type kTypes[] = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4},     {"I32", 4},
                                    {"U32", 4}, {"F16", 2}, {"I16", 2},  {"U16", 2},     {"BF16", 2},
                                    {"I8", 1},  {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& one) { return one.name == type; });
  return found == std::end(kTypes) ? 0 : found->bytes;
}

/// An open file that supports bounds-checked reads at any offset.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path) {
    std::error_code unknown;
    if (std::filesystem::is_regular_file(path, unknown)) {  // opening a pipe would wait for a writer
      stream_.open(path, std::ios::binary);
      size_ = std::filesystem::file_size(path, unknown);
    }
    if (!stream_.is_open() || unknown) throw UserError(fmt::format("{}: cannot be read", path));
  }
  uint64_t size() const { return size_; }
  std::string read(uint64_t offset, uint64_t bytes) {
    if (offset > size_ || bytes > size_ - offset) fail("a complete file", "a truncated one");
    std::string result(bytes, '\0');
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(result.data(), static_cast<std::streamsize>(bytes));
    if (!stream_) fail("a complete file", "a truncated one");
    return result;
  }
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw UserError(fmt::format("{}: expected {}, found {}", path_, expected, found));
  }
  /// `mistake`: a message that does not say where the error is, such as "expected a string, found 5".
  [[noreturn]] void fail_in_header(std::string_view mistake) const {
    throw UserError(fmt::format("{}: {} in the header", path_, mistake));
  }

 private:
  std::string path_;
  std::ifstream stream_;
  uint64_t size_ = 0;
};

struct Entry {
  std::string name, type;
  Shape shape;
  uint64_t begin = 0, end = 0;  // byte offsets, counted from the end of the header
};

/// Parses one entry of the header. Throws UserError if the entry is invalid, for example if its size in bytes
/// does not match its shape and type.
Entry entry_of(const std::string& name, const Json& json, const OpenFile& file) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    file.fail(fmt::format("{} for the array '{}'", expected, name), found);
  };
  if (!json.is_object() || !json.find("dtype") || !json.find("shape") || !json.find("data_offsets"))
    refuse("the fields dtype, shape and data_offsets", "other fields");
  Entry entry{name, json.at("dtype").as_string(), {}, 0, 0};
  const int64_t bytes = element_bytes(entry.type);
  if (bytes == 0) refuse("a safetensors dtype", fmt::format("'{}'", entry.type));
  std::vector<int64_t> extents, without_zeros;
  for (const Json& extent : json.at("shape").items()) {
    extents.push_back(extent.as_int());
    if (extents.back() < 0) refuse("non-negative extents", std::to_string(extents.back()));
    if (extents.back() > 0) without_zeros.push_back(extents.back());
  }
  entry.shape = Shape(extents);
  if (Shape(without_zeros).exceeds(INT64_MAX - 1))
    refuse("a shape whose size fits into 64 bits", entry.shape.str());
  const Json::Array& offsets = json.at("data_offsets").items();
  if (offsets.size() != 2 || offsets[0].as_int() < 0 || offsets[1].as_int() < offsets[0].as_int())
    refuse("two ascending data_offsets", json.at("data_offsets").dump());
  entry.begin = static_cast<uint64_t>(offsets[0].as_int());
  entry.end = static_cast<uint64_t>(offsets[1].as_int());
  if (entry.end > file.size())
    refuse("data within the file",
           fmt::format("data up to byte {} after the header in a file of {} bytes", entry.end, file.size()));
  const auto most = static_cast<int64_t>(entry.end - entry.begin) / bytes;
  if (entry.shape.exceeds(most) ||
      static_cast<uint64_t>(entry.shape.elements() * bytes) != entry.end - entry.begin)
    refuse(fmt::format("the number of bytes that the shape {} and the dtype {} require", entry.shape.str(),
                       entry.type),
           fmt::format("{} bytes", entry.end - entry.begin));
  return entry;
}

/// Throws UserError unless the arrays together cover all bytes after the header exactly once.
void check_places(std::vector<Entry> entries, uint64_t data_bytes, const OpenFile& file) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at)
      file.fail("contiguous arrays",
                fmt::format("'{}' at byte {}, although the data before it end at byte {}", entry.name,
                            entry.begin, at));
    at = entry.end;
  }
  if (at != data_bytes)
    file.fail(fmt::format("arrays of {} bytes in total, up to the end of the file", data_bytes),
              fmt::format("arrays of {} bytes", at));
}

template <class Bits>
Bits bits_at(const std::string& bytes, size_t index) {
  return static_cast<Bits>(
      read_little_endian(std::string_view(bytes).substr(index * sizeof(Bits), sizeof(Bits))));
}

std::optional<std::vector<float>> floats_of(const Entry& entry, const std::string& bytes) {
  const auto count = static_cast<size_t>(entry.shape.elements());
  const auto decode = [&](auto one) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = one(i);
    return values;
  };
  if (entry.type == "F32")
    return decode([&](size_t i) { return std::bit_cast<float>(bits_at<uint32_t>(bytes, i)); });
  if (entry.type == "F64")
    return decode(
        [&](size_t i) { return static_cast<float>(std::bit_cast<double>(bits_at<uint64_t>(bytes, i))); });
  if (entry.type == "F16") return decode([&](size_t i) { return from_float16(bits_at<uint16_t>(bytes, i)); });
  if (entry.type == "BF16")
    return decode([&](size_t i) { return from_bfloat16(bits_at<uint16_t>(bytes, i)); });
  return std::nullopt;
}

Json parse_header(OpenFile& file, uint64_t length) {
  const std::string text = file.read(kLengthBytes, length);
  try {
    // Duplicate names are an error, because readers may differ in which of the two arrays they use.
    return Json::parse(text, Json::RepeatedKeys::error);
  } catch (const UserError& error) {
    file.fail_in_header(error.what());
  }
}

std::string header_of(const std::vector<ArrayRef>& arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  Json::Object header;
  Json about = Json::object();
  for (const auto& [key, value] : metadata) about.set(key, value);
  if (!metadata.empty()) header.emplace_back("__metadata__", std::move(about));
  int64_t at = 0;
  for (const ArrayRef& array : arrays) {
    Json shape = Json::array(), offsets = Json::array();
    for (const int64_t extent : array.shape) shape.push(extent);
    offsets.push(at);
    at += static_cast<int64_t>(array.bytes());
    offsets.push(at);
    header.emplace_back(array.name, Json::object()
                                        .set("dtype", array.dtype == DType::int32 ? "I32" : "F32")
                                        .set("shape", std::move(shape))
                                        .set("data_offsets", std::move(offsets)));
  }
  std::string text = Json(std::move(header)).dump();
  text.append(-text.size() % kLengthBytes, ' ');
  return text;
}

}  // namespace

bool begins_as_safetensors(const std::string& path) {
  const std::string start = first_bytes(path, kLengthBytes + 1);
  if (start.size() != kLengthBytes + 1 || start[kLengthBytes] != '{') return false;
  std::error_code unknown;
  const uint64_t size = std::filesystem::file_size(path, unknown);
  return !unknown && size > kLengthBytes &&
         read_little_endian(start.substr(0, kLengthBytes)) <= size - kLengthBytes;
}

SafetensorsFile SafetensorsFile::load(const std::string& path) {
  OpenFile file(path);
  const uint64_t length = read_little_endian(file.read(0, kLengthBytes));
  if (length > kMostHeader)
    file.fail(fmt::format("a header of at most {} bytes", kMostHeader), fmt::format("{} bytes", length));
  const Json header = parse_header(file, length);
  if (!header.is_object()) file.fail("a header that lists the arrays by name", "something else");
  SafetensorsFile result;
  std::vector<Entry> entries;
  try {
    for (const auto& [name, value] : header.entries()) {
      if (name != "__metadata__") {
        entries.push_back(entry_of(name, value, file));
        continue;
      }
      for (const auto& [key, text] : value.entries()) result.metadata[key] = text.as_string();
    }
  } catch (const UserError& error) {
    if (std::string_view(error.what()).starts_with(path)) throw;
    file.fail_in_header(error.what());
  }
  const uint64_t data = kLengthBytes + length;
  check_places(entries, file.size() - data, file);
  for (const Entry& entry : entries) {
    const std::string bytes = file.read(data + entry.begin, entry.end - entry.begin);
    SafetensorsArray array{entry.name, entry.shape, floats_of(entry, bytes)};
    if (!array.values) array.other = entry.type + bytes;
    result.arrays.push_back(std::move(array));
  }
  return result;
}

void write_safetensors(NewFile& file, const std::vector<ArrayRef>& arrays,
                       const std::vector<std::pair<std::string, std::string>>& metadata) {
  const std::string header = header_of(arrays, metadata);
  const std::string length = little_endian(static_cast<uint64_t>(header.size()));
  file.append(length.data(), length.size());
  file.append(header.data(), header.size());
  for (const ArrayRef& array : arrays) file.append(array.data, array.bytes());
}

}  // namespace dtrain
