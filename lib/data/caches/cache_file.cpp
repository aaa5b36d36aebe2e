#include "data/caches/cache_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <isa-l/crc.h>

#include "base/error.h"
#include "base/json.h"
#include "data/input_file.h"

namespace dtrain {

namespace {

/// The file's first bytes.
struct Start {
  std::array<char, 8> magic;
  uint32_t length, crc;  // of the header
};
static_assert(sizeof(Start) == 16);

constexpr std::array<char, 8> kMagic{'D', 'T', 'C', 'A', 'C', 'H', 'E', '1'};
constexpr int64_t kAlignment = 4096;
constexpr uint32_t kMostHeader = 64u << 20;

uint32_t checksum(const std::string& text) {
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

int64_t aligned(int64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

Json shape_json(const Shape& shape) {
  Json extents = Json::array();
  for (const int64_t extent : shape) extents.push(extent);
  return extents;
}

/// The header, padded so that the first array begins at a multiple of the alignment. Offsets count from
/// there.
std::string make_header(const std::string& identity, const Columns& columns, int64_t from, int64_t to) {
  Json arrays = Json::array();
  int64_t offset = 0;
  for (const auto& column : columns) {
    const TensorSpec& spec = column->spec();
    arrays.push(Json::object()
                    .set("name", spec.name)
                    .set("shape", shape_json(spec.shape))
                    .set("dtype", name_of(spec.dtype))
                    .set("offset", offset));
    offset = aligned(offset + (to - from) * static_cast<int64_t>(column->row_bytes()));
  }
  Json header = Json::object();
  header.set("identity", identity)
      .set("first", from)
      .set("rows", to - from)
      .set("total", columns.front()->size());
  header.set("bytes", offset).set("arrays", std::move(arrays));
  const std::string text = header.dump();
  const auto begin = aligned(static_cast<int64_t>(sizeof(Start) + text.size()));
  std::string padded = text;
  padded.resize(static_cast<size_t>(begin) - sizeof(Start), ' ');
  const Start start{kMagic, static_cast<uint32_t>(padded.size()), checksum(padded)};
  return std::string(reinterpret_cast<const char*>(&start), sizeof start) + padded;
}

/// What follows throws UserError (by InputFile and Json) for a file that is none of ours.
TensorSpec spec_from(const Json& json) {
  std::vector<int64_t> extents;
  for (const Json& extent : json.at("shape").items()) extents.push_back(extent.as_int());
  const auto dtype = dtype_from(json.at("dtype").as_string());
  if (!dtype) throw UserError("no such dtype");
  return {json.at("name").as_string(), Shape(std::move(extents)), *dtype};
}

std::shared_ptr<const std::byte> map_file(const std::string& path, size_t bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<const std::byte*>(memory),
          [bytes](const std::byte* p) { munmap(const_cast<std::byte*>(p), bytes); }};
}

std::optional<CachedColumns> map_valid_file(const std::string& path, const std::string& identity) {
  const InputFile file(path);
  Start start{};
  file.read(0, &start, sizeof start);
  if (start.magic != kMagic || start.length > kMostHeader) return std::nullopt;
  std::string text(start.length, ' ');
  file.read(sizeof start, text.data(), text.size());
  if (checksum(text) != start.crc) return std::nullopt;
  const Json header = Json::parse(text);
  const int64_t begin = static_cast<int64_t>(sizeof start + text.size()), rows = header.at("rows").as_int();
  if (header.at("identity").as_string() != identity || rows < 0 ||
      begin + header.at("bytes").as_int() != file.size())
    return std::nullopt;
  const auto memory = map_file(path, static_cast<size_t>(file.size()));
  if (!memory) return std::nullopt;
  CachedColumns cached{{}, header.at("first").as_int(), header.at("total").as_int()};
  for (const Json& json : header.at("arrays").items()) {
    const int64_t offset = begin + json.at("offset").as_int();
    auto column = std::make_shared<MemoryColumn>(
        spec_from(json), rows, std::shared_ptr<const std::byte>(memory, memory.get() + offset), false);
    if (offset < begin || offset + rows * static_cast<int64_t>(column->row_bytes()) > file.size())
      return std::nullopt;
    cached.columns.push_back(std::move(column));
  }
  return cached;
}

/// A temporary file beside its goal; gone again unless renamed to it.
class Replacement {
 public:
  explicit Replacement(const std::string& path) : path_(path), temporary_(path + ".XXXXXX") {
    fd_ = mkstemp(temporary_.data());
    if (fd_ < 0) fail("create");
  }
  ~Replacement() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(temporary_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(const void* data, size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t put = ::write(fd_, from, bytes);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail("write");
      from += put;
      bytes -= static_cast<size_t>(put);
      offset_ += put;
    }
  }
  void pad() {
    const std::string zeros(static_cast<size_t>(aligned(offset_) - offset_), '\0');
    write(zeros.data(), zeros.size());
  }
  void commit() {
    if (fsync(fd_) != 0) fail("write");
    if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
    close(fd_);
    fd_ = -1;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(fmt::format("{}: cannot {} the cache file: {}", path_, what, std::strerror(errno)));
  }
  std::string path_, temporary_;
  int fd_ = -1;
  int64_t offset_ = 0;
};

}  // namespace

std::optional<CachedColumns> map_cache_file(const std::string& path, const std::string& identity) {
  try {
    return map_valid_file(path, identity);
  } catch (const Error&) {  // missing, short, no JSON or another
    return std::nullopt;
  }
}

void write_cache_file(const std::string& path, const std::string& identity, const Columns& columns,
                      int64_t from, int64_t to) {
  Replacement file(path);
  const std::string header = make_header(identity, columns, from, to);
  file.write(header.data(), header.size());
  for (const auto& column : columns) {
    for_each_block(*column, from, to, [&](int64_t first, int64_t count, size_t) {
      const size_t bytes = static_cast<size_t>(count) * column->row_bytes();
      const auto block = allocate_bytes(bytes);
      column->read(row_numbers(first, count), block.get());
      file.write(block.get(), bytes);
    });
    file.pad();
  }
  file.commit();
}

}  // namespace dtrain
