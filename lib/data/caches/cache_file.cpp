#include "data/caches/cache_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <isa-l/crc.h>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/json.h"
#include "data/files/mapped_file.h"

namespace dtrain {

namespace {

/// First bytes of the file.
struct Start {
  std::array<char, 8> magic;
  uint32_t length, crc;  // length and CRC-32 of the header
};
static_assert(sizeof(Start) == 16);

constexpr std::array<char, 8> kMagic{'D', 'T', 'C', 'A', 'C', 'H', 'E', '3'};
constexpr int64_t kPageBytes = 4096;
constexpr uint32_t kMostHeader = 64u << 20;

uint32_t checksum(const std::string& text) {
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

int64_t aligned(int64_t offset) {
  return (offset + kPageBytes - 1) / kPageBytes * kPageBytes;
}

Json shape_json(const Shape& shape) {
  Json extents = Json::array();
  for (const int64_t extent : shape) extents.push(extent);
  return extents;
}

/// Returns the first part of the file: the start and the header, padded with blanks to a multiple of
/// kPageBytes. The first array begins at the end of this part, and the offsets of the arrays are relative to
/// this position.
std::string make_header(const CacheKey& key, const CachedColumns& cached, int64_t to) {
  const int64_t from = cached.first;
  Json arrays = Json::array();
  int64_t offset = 0;
  for (const auto& column : cached.all()) {
    const TensorSpec& spec = column->spec();
    arrays.push(Json::object()
                    .set("name", spec.name)
                    .set("shape", shape_json(spec.shape))
                    .set("dtype", name_of(spec.dtype))
                    .set("offset", offset));
    offset = aligned(offset + (to - from) * static_cast<int64_t>(column->row_bytes()));
  }
  Json header = Json::object();
  header.set("source", key.source)
      .set("identity", key.identity)
      .set("known", key.facts.to_json())
      .set("facts", cached.facts.to_json())
      .set("first", from)
      .set("rows", to - from)
      .set("total", cached.total)
      .set("weights", cached.weights != nullptr)
      .set("names", cached.names != nullptr);
  Json warnings = Json::array();
  for (const std::string& warning : cached.warnings) warnings.push(warning);
  header.set("warnings", std::move(warnings));
  header.set("bytes", offset).set("arrays", std::move(arrays));
  const std::string text = header.dump();
  const auto begin = aligned(static_cast<int64_t>(sizeof(Start) + text.size()));
  std::string padded = text;
  padded.resize(static_cast<size_t>(begin) - sizeof(Start), ' ');
  const Start start{kMagic, static_cast<uint32_t>(padded.size()), checksum(padded)};
  return std::string(reinterpret_cast<const char*>(&start), sizeof start) + padded;
}

/// spec_from() and the following functions throw UserError if the file is not a valid cache file. The errors
/// come from InputFile and Json.
TensorSpec spec_from(const Json& json) {
  std::vector<int64_t> extents;
  for (const Json& extent : json.at("shape").items()) extents.push_back(extent.as_int());
  const std::string name = json.at("dtype").as_string();
  const auto dtype = name == name_of(DType::float64) ? DType::float64 : data_type_from(name);
  if (!dtype) throw UserError("no such dtype");
  return {json.at("name").as_string(), Shape(std::move(extents)), *dtype};
}

/// One array of the mapped file.
class MappedColumn final : public MemoryColumn {
 public:
  MappedColumn(TensorSpec spec, int64_t size, std::shared_ptr<const MappedFile> file, int64_t offset)
      : MemoryColumn(std::move(spec), size, {file, file->data() + offset}), file_(std::move(file)) {}
  // The file is mapped, so reading may still have to access the disk.
  bool in_memory() const override { return false; }
  void check() const override { file_->check(); }

 private:
  std::shared_ptr<const MappedFile> file_;
};

std::shared_ptr<const Column> take_last(Columns& columns) {
  if (columns.empty()) throw UserError("no such column");
  auto last = columns.back();
  columns.pop_back();
  return last;
}

struct Header {
  Json json;
  int64_t end = 0;  // end of the header, where the arrays begin, as an offset in the file
};

std::optional<Header> read_header(const InputFile& file) {
  Start start{};
  file.read(0, &start, sizeof start);
  if (start.magic != kMagic || start.length > kMostHeader) return std::nullopt;
  std::string text(start.length, ' ');
  file.read(sizeof start, text.data(), text.size());
  if (checksum(text) != start.crc) return std::nullopt;
  return Header{Json::parse(text), static_cast<int64_t>(sizeof start + text.size())};
}

std::optional<CachedColumns> map_valid_file(const std::string& path, const CacheKey& key) {
  const auto mapped = std::make_shared<const MappedFile>(path);
  const InputFile& file = mapped->file();
  const auto found = read_header(file);
  if (!found) return std::nullopt;
  const Json& header = found->json;
  const int64_t begin = found->end, rows = header.at("rows").as_int();
  if (header.at("identity").as_string() != key.identity || rows < 0 ||
      begin + header.at("bytes").as_int() != file.size())
    return std::nullopt;
  CachedColumns cached({}, header.at("first").as_int(), header.at("total").as_int());
  cached.known = SourceFacts::from_json(header.at("known"));
  cached.facts = SourceFacts::from_json(header.at("facts"));
  if (!cached.was_read_by(key.facts)) return std::nullopt;
  for (const Json& json : header.at("arrays").items()) {
    const int64_t offset = begin + json.at("offset").as_int();
    if (offset < begin || offset > file.size()) return std::nullopt;
    auto column = std::make_shared<MappedColumn>(spec_from(json), rows, mapped, offset);
    if (rows * static_cast<int64_t>(column->row_bytes()) > file.size() - offset) return std::nullopt;
    cached.columns.push_back(std::move(column));
  }
  for (const Json& warning : header.at("warnings").items()) cached.warnings.push_back(warning.as_string());
  if (header.at("names").as_bool()) cached.names = take_last(cached.columns);
  if (header.at("weights").as_bool()) cached.weights = take_last(cached.columns);
  file.show_use();
  return cached;
}

/// Finds the first line in which two texts differ. Returns the line of `a` and the line of `b`.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto line_at = [](const std::string& text, std::string::const_iterator at) {
    const auto place = static_cast<size_t>(at - text.begin());
    const size_t begin = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;  // npos + 1 is 0
    const std::string line = text.substr(begin, std::min(text.find('\n', place), text.size()) - begin);
    return line.substr(std::min(line.find_first_not_of(' '), line.size()));
  };
  return {line_at(a, x), line_at(b, y)};
}

/// Throws UserError if is_rejected(file) returns true and the file holds a different data set than the one
/// that `key` describes.
template <class IsRejected>
void reject_other_data(const std::string& path, const CacheKey& key, IsRejected is_rejected) {
  std::string source = key.source;
  try {
    const InputFile file(path);
    if (!is_rejected(file)) return;
    if (const auto header = read_header(file)) source = header->json.at("source").as_string();
  } catch (const Error&) {  // the file is missing or damaged
    return;
  }
  if (source == key.source) return;
  const auto [theirs, ours] = first_difference(source, key.source);
  throw UserError(
      fmt::format("{}: another run uses this cache file for another data set ('{}' instead of '{}'); give "
                  "each data set its own path in dataset.cache",
                  path, theirs, ours));
}

/// Returns true if `path` does not exist or is a cache file. Cache files of other versions may be replaced,
/// too.
bool may_be_replaced(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return errno == ENOENT;
  try {
    std::array<char, kMagic.size()> magic{};
    InputFile(path).read(0, magic.data(), magic.size());
    return std::equal(magic.begin(), magic.end() - 1, kMagic.begin());
  } catch (const Error&) {  // `path` is a folder, a dangling link or a file of a few bytes
    return false;
  }
}

}  // namespace

std::optional<CachedColumns> map_cache_file(const std::string& path, const CacheKey& key) {
  try {
    return map_valid_file(path, key);
  } catch (const Error&) {  // the file is missing or too short, or its header is not the expected JSON
    return std::nullopt;
  }
}

void check_cache_file(const std::string& path) {
  const auto refuse = [&](std::string_view reason) {
    throw UserError(
        fmt::format("{}: this path cannot be used for the data set's cache, because {}", path, reason));
  };
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0)
    refuse(fmt::format("the folder {} cannot be accessed: {}", folder, std::strerror(errno)));
  if (!S_ISDIR(status.st_mode)) refuse(folder + " is not a folder");
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    refuse(fmt::format("the folder {} is not writable: {}", folder, std::strerror(errno)));
  if (!may_be_replaced(path))
    refuse(
        "a file with this name exists and is not a cache file of dtrain; give another path, because other "
        "files are never overwritten");
}

void check_cache_file(const std::string& path, const CacheKey& key) {
  check_cache_file(path);
  reject_other_data(path, key, [](const InputFile& file) { return file.is_in_use(); });
}

CachedColumns map_written_file(const std::string& path, const CacheKey& key) {
  if (auto cached = map_cache_file(path, key)) return *std::move(cached);
  reject_other_data(path, key, [](const InputFile&) { return true; });
  throw Error(fmt::format("{}: another process changed the cache file while it was written", path));
}

void write_cache_file(const std::string& path, const CacheKey& key, const CachedColumns& columns,
                      int64_t to) {
  check_cache_file(path, key);
  NewFile file(path);
  const std::string header = make_header(key, columns, to);
  file.append(header.data(), header.size());
  for (const auto& column : columns.all()) {
    for_each_block(*column, columns.first, to, [&](int64_t first, int64_t count, size_t) {
      const size_t bytes = static_cast<size_t>(count) * column->row_bytes();
      const auto block = allocate_bytes(bytes);
      column->read(row_numbers(first, count), block.get());
      file.append(block.get(), bytes);
    });
    const std::string zeros(static_cast<size_t>(aligned(file.appended()) - file.appended()), '\0');
    file.append(zeros.data(), zeros.size());
  }
  // The path is checked again because another process may have created or changed a file at this path in the
  // meantime.
  check_cache_file(path, key);
  file.finish();
}

}  // namespace dtrain
