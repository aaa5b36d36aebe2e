#include "interop/zip.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include "base/cursor.h"
#include "base/error.h"

namespace dtrain {

namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint64_t kLocalHeaderBytes = 30, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint64_t kMostEntries = 100'000, kMostDirectoryBytes = uint64_t{64} << 20;
constexpr uint64_t kIsInZip64 = 0xffffffff;
constexpr const char* kOther = "other bytes; the file is damaged";

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Returns true if a name could refer to a file outside the folder into which the archive is unpacked.
bool leads_out(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\\') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos || (name.size() > 1 && name[1] == ':'))
    return true;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..") return true;
    begin = end + 1;
  }
  return false;
}

/// Returns the content of the Zip64 field in the extra fields of a directory entry; empty if there is no
/// Zip64 field.
std::span<const std::byte> zip64_field(std::span<const std::byte> extra) {
  constexpr uint64_t kZip64 = 1;
  Cursor fields(extra, "extra fields of a zip entry");
  while (fields.left() >= 4) {
    const uint64_t id = fields.number(2), size = fields.number(2);
    const auto field = fields.take(size);
    if (id == kZip64) return field;
  }
  return {};
}

}  // namespace

void ZipFile::refuse(const std::string& expected, const std::string& found) const {
  dtrain::refuse(path_, expected, found);
}

std::string ZipFile::bytes_at(uint64_t offset, uint64_t count, const char* what) const {
  if (offset > file_bytes_ || count > file_bytes_ - offset)
    refuse(fmt::format("{} within the file, which has {} bytes", what, file_bytes_),
           fmt::format("{} bytes at offset {}", count, offset));
  std::string bytes(static_cast<size_t>(count), '\0');
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset));
  file_.read(bytes.data(), static_cast<std::streamsize>(count));
  if (!file_) throw UserError(fmt::format("{}: could not be read at offset {}", path_, offset));
  return bytes;
}

ZipFile::Directory ZipFile::find_directory() const {
  constexpr uint64_t kLongestComment = 65535;
  if (file_bytes_ < kEndBytes) refuse("a zip archive", fmt::format("{} bytes", file_bytes_));
  const uint64_t tail_bytes = std::min(file_bytes_, kEndBytes + kLongestComment);
  const uint64_t tail_offset = file_bytes_ - tail_bytes;
  const std::string tail = bytes_at(tail_offset, tail_bytes, "the end-of-central-directory record");
  const size_t at = tail.rfind("PK\x05\x06", tail.size() - kEndBytes);
  if (at == std::string::npos)
    refuse("a complete zip archive",
           "an archive without an end-of-central-directory record; the file may be truncated");
  Cursor end(bytes_of(tail).subspan(at), "end-of-central-directory record");
  end.skip(4);
  const uint64_t disk = end.number(2), directory_disk = end.number(2);
  end.skip(2);
  Directory directory;
  directory.entries = end.number(2);
  directory.bytes = end.number(4);
  directory.offset = end.number(4);
  const uint64_t end_offset = tail_offset + at;
  if (end_offset >= kLocatorBytes) {
    const std::string text =
        bytes_at(end_offset - kLocatorBytes, kLocatorBytes, "the Zip64 end-of-central-directory locator");
    Cursor locator(bytes_of(text), "Zip64 end-of-central-directory locator");
    if (locator.number(4) == kEnd64Locator) {
      locator.skip(4);
      const std::string record =
          bytes_at(locator.number(8), kEnd64Bytes, "the Zip64 end-of-central-directory record");
      Cursor end64(bytes_of(record), "Zip64 end-of-central-directory record");
      if (end64.number(4) != kEnd64)
        refuse("the signature of the Zip64 end-of-central-directory record", kOther);
      end64.skip(8 + 2 + 2 + 4 + 4 + 8);
      directory.entries = end64.number(8);
      directory.bytes = end64.number(8);
      directory.offset = end64.number(8);
    }
  }
  if (disk != 0 || directory_disk != 0) refuse("an archive of one file", "a part of a split archive");
  if (directory.entries > kMostEntries || directory.bytes > kMostDirectoryBytes)
    refuse(fmt::format("at most {} entries and a directory of at most {} bytes", kMostEntries,
                       kMostDirectoryBytes),
           fmt::format("{} entries and a directory of {} bytes", directory.entries, directory.bytes));
  return directory;
}

ZipEntry ZipFile::read_entry(Cursor& cursor) const {
  constexpr uint64_t kStored = 0, kDeflated = 8, kEncrypted = 1;
  if (cursor.number(4) != kDirectoryEntry) refuse("an entry of the central directory", kOther);
  cursor.skip(2 + 2);
  const uint64_t flags = cursor.number(2), method = cursor.number(2);
  cursor.skip(2 + 2);
  ZipEntry entry;
  entry.checksum = static_cast<uint32_t>(cursor.number(4));
  entry.packed_bytes = cursor.number(4);
  entry.bytes = cursor.number(4);
  const uint64_t name_bytes = cursor.number(2), extra_bytes = cursor.number(2),
                 comment_bytes = cursor.number(2);
  cursor.skip(2 + 2 + 4);
  entry.header = cursor.number(4);
  entry.name = cursor.text(name_bytes);
  Cursor zip64(zip64_field(cursor.take(extra_bytes)), "Zip64 field");
  for (uint64_t* number : {&entry.bytes, &entry.packed_bytes, &entry.header})
    if (*number == kIsInZip64) *number = zip64.number(8);
  cursor.skip(comment_bytes);
  if (leads_out(entry.name))
    refuse("entries with paths inside the archive's folder",
           fmt::format("'{}', which refers to a file outside it", entry.name));
  if ((flags & kEncrypted) != 0)
    refuse("entries without a password", fmt::format("'{}', which is encrypted", entry.name));
  if (method != kStored && method != kDeflated)
    refuse("entries that are stored or deflated",
           fmt::format("'{}', which is compressed with method {}", entry.name, method));
  entry.is_deflated = method == kDeflated;
  if (!entry.is_deflated && entry.bytes != entry.packed_bytes)
    refuse(fmt::format("{} bytes for the stored (uncompressed) entry '{}'", entry.bytes, entry.name),
           fmt::format("{} bytes", entry.packed_bytes));
  return entry;
}

ZipFile::ZipFile(const std::string& path) : path_(path), file_(path, std::ios::binary) {
  file_.seekg(0, std::ios::end);
  const std::streamoff size = file_.tellg();
  if (!file_ || size < 0) throw UserError(fmt::format("{}: could not be read", path));
  file_bytes_ = static_cast<uint64_t>(size);
  const Directory directory = find_directory();
  const std::string text = bytes_at(directory.offset, directory.bytes, "the central directory");
  Cursor cursor(bytes_of(text), "central directory");
  for (uint64_t i = 0; i < directory.entries; ++i) entries_.push_back(read_entry(cursor));
  check_entries();
}

void ZipFile::check_entries() const {
  constexpr uint64_t kMostTimes = 3, kAlwaysAllowed = uint64_t{64} << 20;
  const uint64_t most = kMostTimes * file_bytes_ + kAlwaysAllowed;
  std::set<std::string_view> names;
  // For each entry, the offset of its first byte and the offset of the byte after its last byte.
  std::vector<std::pair<uint64_t, uint64_t>> places;
  uint64_t unpacked = 0;
  for (const ZipEntry& entry : entries_) {
    if (!names.insert(entry.name).second)
      refuse("entries with different names", fmt::format("two called '{}'", entry.name));
    if (entry.header > file_bytes_ || entry.packed_bytes > file_bytes_ - entry.header)
      refuse(fmt::format("entries within the file, which has {} bytes", file_bytes_),
             fmt::format("'{}' with {} bytes at offset {}", entry.name, entry.packed_bytes, entry.header));
    places.emplace_back(entry.header, entry.header + kLocalHeaderBytes + entry.packed_bytes);
    unpacked += std::min(entry.bytes, most + 1);
    if (unpacked > most)
      refuse(fmt::format(
                 "unpacked entries of at most {} bytes in total (limit: 3 times the file size plus 64 MiB)",
                 most),
             "more");
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i].first < places[i - 1].second) refuse("entries that do not overlap", "overlapping ones");
}

const ZipEntry* ZipFile::find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const ZipEntry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

uint64_t ZipFile::data_offset(const ZipEntry& entry) const {
  const std::string text = bytes_at(entry.header, kLocalHeaderBytes, "the local header of an entry");
  Cursor header(bytes_of(text), "local header of a zip entry");
  if (header.number(4) != kLocalHeader)
    refuse(fmt::format("the local header of '{}' at offset {}", entry.name, entry.header), kOther);
  header.skip(22);
  const uint64_t name_bytes = header.number(2), extra_bytes = header.number(2);
  return entry.header + kLocalHeaderBytes + name_bytes + extra_bytes;
}

Bytes ZipFile::read(const ZipEntry& entry) const {
  const uint64_t offset = data_offset(entry);
  const Bytes bytes = allocate_block(static_cast<size_t>(entry.bytes));
  if (entry.is_deflated) {
    std::string packed = bytes_at(offset, entry.packed_bytes, "the compressed data of an entry");
    constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
    if (entry.bytes > kMost || entry.packed_bytes > kMost)
      refuse("deflated entries of less than 4 GiB", fmt::format("'{}', which is larger", entry.name));
    inflate_state state;
    isal_inflate_init(&state);
    state.next_in = reinterpret_cast<uint8_t*>(packed.data());
    state.avail_in = static_cast<uint32_t>(packed.size());
    state.next_out = reinterpret_cast<uint8_t*>(bytes.data.get());
    state.avail_out = static_cast<uint32_t>(bytes.size);
    const int result = isal_inflate_stateless(&state);
    if (result != ISAL_DECOMP_OK || state.total_out != bytes.size)
      refuse(fmt::format("data of '{}' that decompresses to {} bytes", entry.name, entry.bytes),
             "damaged data");
  } else {
    if (offset > file_bytes_ || entry.bytes > file_bytes_ - offset)
      refuse(fmt::format("the data of '{}' within the file, which has {} bytes", entry.name, file_bytes_),
             fmt::format("{} bytes at offset {}", entry.bytes, offset));
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(reinterpret_cast<char*>(bytes.data.get()), static_cast<std::streamsize>(bytes.size));
    if (!file_) throw UserError(fmt::format("{}: could not be read at offset {}", path_, offset));
  }
  const uint32_t checksum =
      crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data.get()), bytes.size);
  if (checksum != entry.checksum)
    refuse(fmt::format("the checksum {:08x} of '{}'", entry.checksum, entry.name),
           fmt::format("{:08x}: the file is damaged", checksum));
  return bytes;
}

}  // namespace dtrain
