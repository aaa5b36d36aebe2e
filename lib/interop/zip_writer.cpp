#include "interop/zip_writer.h"

#include <span>

#include <isa-l/crc.h>

namespace dtrain {

namespace {

constexpr uint64_t kVersion = 45;          // first version with Zip64
constexpr uint64_t kFirstDay = 0x21;       // 1980-01-01
constexpr uint64_t kInZip64 = 0xffffffff;  // tells readers that the number is in the Zip64 field
constexpr uint64_t kZip64 = 1;             // id of the Zip64 extra field
constexpr uint64_t kUtf8 = 0x800;          // flag for names that are UTF-8

/// Builds a record from little-endian numbers and text.
class Record {
 public:
  Record& add(uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) text_ += static_cast<char>(number >> (8 * i) & 0xff);
    return *this;
  }
  Record& add(const std::string& text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Adds the fields that local headers and directory entries have in common: from the version up to the
/// lengths of the name and the extra fields.
void add_common(Record& record, uint32_t checksum, const std::string& name, size_t extra_bytes) {
  constexpr uint64_t kStored = 0;
  record.add(kVersion, 2).add(kUtf8, 2).add(kStored, 2).add(0, 2).add(kFirstDay, 2).add(checksum, 4);
  record.add(kInZip64, 4).add(kInZip64, 4).add(name.size(), 2).add(extra_bytes, 2);
}

}  // namespace

void ZipWriter::add(const std::string& name, Parts parts) {
  Entry entry{name, static_cast<uint64_t>(file_.appended()), 0, 0};
  for (const auto part : parts) {
    entry.bytes += part.size();
    entry.checksum =
        crc32_gzip_refl(entry.checksum, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  }
  const std::string extra = Record().add(kZip64, 2).add(16, 2).add(entry.bytes, 8).add(entry.bytes, 8).text();
  Record header;
  header.add(0x04034b50, 4);
  add_common(header, entry.checksum, name, extra.size());
  header.add(name).add(extra);
  file_.append(header.text().data(), header.text().size());
  for (const auto part : parts) file_.append(part.data(), part.size());
  entries_.push_back(std::move(entry));
}

void ZipWriter::add(const std::string& name, const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  add(name, Parts(&bytes, 1));
}

void ZipWriter::finish() {
  const auto begin = static_cast<uint64_t>(file_.appended());
  Record directory;
  for (const Entry& entry : entries_) {
    const std::string extra = Record()
                                  .add(kZip64, 2)
                                  .add(24, 2)
                                  .add(entry.bytes, 8)
                                  .add(entry.bytes, 8)
                                  .add(entry.header, 8)
                                  .text();
    directory.add(0x02014b50, 4).add(kVersion, 2);
    add_common(directory, entry.checksum, entry.name, extra.size());
    directory.add(0, 2).add(0, 2).add(0, 2).add(0, 4).add(kInZip64, 4).add(entry.name).add(extra);
  }
  const uint64_t bytes = directory.text().size(), end = begin + bytes;
  directory.add(0x06064b50, 4).add(44, 8).add(kVersion, 2).add(kVersion, 2).add(0, 4).add(0, 4);
  directory.add(entries_.size(), 8).add(entries_.size(), 8).add(bytes, 8).add(begin, 8);
  directory.add(0x07064b50, 4).add(0, 4).add(end, 8).add(1, 4);
  directory.add(0x06054b50, 4).add(0, 2).add(0, 2).add(0xffff, 2).add(0xffff, 2);
  directory.add(kInZip64, 4).add(kInZip64, 4).add(0, 2);
  file_.append(directory.text().data(), directory.text().size());
  file_.finish();
}

}  // namespace dtrain
