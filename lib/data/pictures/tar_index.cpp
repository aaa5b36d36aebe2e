#include "data/pictures/tar_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

constexpr int64_t kTarBlock = 512;
// Maximum length in bytes of a name, and of all records of a pax header together.
constexpr int64_t kTarMostName = int64_t{1} << 20;

/// Position of a field in a header.
struct TarField {
  size_t from, bytes;
};
constexpr TarField kTarName{0, 100}, kTarSize{124, 12}, kTarSum{148, 8}, kTarMagic{257, 6},
    kTarPrefix{345, 155};
constexpr size_t kTarType = 156;

std::string_view field_of(std::string_view header, TarField field) {
  return header.substr(field.from, field.bytes);
}

std::string_view until_zero(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

/// Parses a number in a header. It consists either of octal digits surrounded by spaces or, in the format of
/// GNU tar for large numbers, of the byte 0x80 and big-endian bytes.
std::optional<int64_t> tar_number(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() >> 8;
  int64_t value = 0;
  if ((static_cast<unsigned char>(text[0]) & 0x80u) != 0) {
    // A first byte other than 0x80 means that the number is negative or too large.
    if (static_cast<unsigned char>(text[0]) != 0x80) return std::nullopt;
    for (const char c : text.substr(1)) {
      if (value > kMost) return std::nullopt;
      value = (value << 8) | static_cast<unsigned char>(c);
    }
    return value;
  }
  text = until_zero(text);
  while (text.starts_with(' ')) text.remove_prefix(1);
  text = text.substr(0, text.find(' '));
  for (const char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + (c - '0');
  }
  return value;
}

/// Returns true if the checksum of the header is correct. It is the sum of all bytes of the header, with
/// spaces in place of the checksum itself. Some programs add the bytes as signed numbers, so this sum is
/// accepted, too.
bool has_right_sum(std::string_view header) {
  int64_t sum = 0, of_signed = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const char c = i >= kTarSum.from && i < kTarSum.from + kTarSum.bytes ? ' ' : header[i];
    sum += static_cast<unsigned char>(c);
    of_signed += static_cast<signed char>(c);
  }
  const auto stored = tar_number(field_of(header, kTarSum));
  return stored && (*stored == sum || *stored == of_signed);
}

/// Returns the program that decompresses a file with these first bytes; null if the file is not compressed.
const char* packed_by(std::string_view start) {
  using namespace std::string_view_literals;
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kAll{{{"\x1f\x8b"sv, "gzip"},
                                                                          {"BZh"sv, "bzip2"},
                                                                          {"\xfd\x37zXZ\0"sv, "xz"},
                                                                          {"\x28\xb5\x2f\xfd"sv, "zstd"}}};
  for (const auto& [magic, program] : kAll)
    if (start.starts_with(magic)) return program;
  return nullptr;
}

/// Reads the headers of an archive one after the other. Reads several blocks at a time because a small text
/// file, such as a label, takes only a header and one block.
class TarWalk {
 public:
  explicit TarWalk(const InputFile& file) : file_(file) {}

  std::vector<TarMember> run() {
    if (file_.size() == 0)
      throw UserError(fmt::format("{}: expected a tar archive, found an empty file", file_.path()));
    reject_packed();
    std::vector<TarMember> members;
    for (int64_t at = 0; at >= 0;) at = step(at, members);
    return members;
  }

 private:
  [[noreturn]] void fail(int64_t at, const std::string& expected, const std::string& found) const {
    throw UserError(fmt::format("{}: expected {} at byte {}, found {}", file_.path(), expected, at, found));
  }

  void reject_packed() {
    if (const char* program = packed_by(bytes_at(0, std::min<int64_t>(file_.size(), 6))))
      throw UserError(
          fmt::format("{}: expected an uncompressed tar archive, found one that is compressed with {}, which "
                      "does not allow random access to its samples; decompress it with `{} -d`",
                      file_.path(), program, program));
  }

  /// Returns the `count` bytes at offset `at`. All of them must be in the file, and `count` must be at most
  /// kTarMostName. The result is valid until the next call.
  std::string_view bytes_at(int64_t at, int64_t count) {
    constexpr int64_t kAhead = 4 * kTarBlock;
    if (at < from_ || at + count > from_ + static_cast<int64_t>(window_.size())) {
      window_.resize(static_cast<size_t>(std::min(std::max(count, kAhead), file_.size() - at)));
      file_.read(at, window_.data(), window_.size());
      from_ = at;
    }
    return std::string_view(window_).substr(static_cast<size_t>(at - from_), static_cast<size_t>(count));
  }

  /// Reads the member whose header is at `at`. Returns the offset of the next header, or -1 at the end.
  int64_t step(int64_t at, std::vector<TarMember>& members) {
    if (file_.size() - at < kTarBlock)
      fail(at, "the next file or the end marker (blocks of zeros) of the tar archive",
           "the end of a truncated archive");
    const std::string header(bytes_at(at, kTarBlock));
    if (header.find_first_not_of('\0') == std::string::npos) return -1;
    if (!has_right_sum(header))
      fail(at, "the header of a file in a tar archive",
           at == 0 ? "something else" : "a header with a wrong checksum (the archive is damaged)");
    const char type = header[kTarType];
    const bool is_file = type == '0' || type == '\0' || type == '7';
    auto bytes = tar_number(field_of(header, kTarSize));
    if (is_file && size_) bytes = size_;
    if (!bytes) fail(at, "a file's size", "an invalid number");
    // Links, folders and devices have no content, even if the header contains a size.
    const int64_t content = type >= '1' && type <= '6' ? 0 : *bytes;
    if (content > file_.size() - at - kTarBlock)
      fail(at, fmt::format("a file of {} bytes", content),
           fmt::format("only {} bytes before the end of the archive", file_.size() - at - kTarBlock));
    if (type == 'L' || type == 'x')
      read_extension(type, at + kTarBlock, content);
    else if (type == 'S')
      fail(at, "a regular file", "a sparse file of GNU tar; create the archive without --sparse");
    else if (type != 'K' && type != 'g')
      add(header, {"", at, at + kTarBlock, content, is_file}, type, members);
    const int64_t next = at + kTarBlock + content;
    return next + (kTarBlock - next % kTarBlock) % kTarBlock;
  }

  void add(std::string_view header, TarMember member, char type, std::vector<TarMember>& members) {
    member.name = name_.empty() ? name_of(header) : name_;
    name_.clear();
    size_.reset();
    if (member.is_file || type == '1' || type == '2') members.push_back(std::move(member));
  }

  static std::string name_of(std::string_view header) {
    std::string name(until_zero(field_of(header, kTarName)));
    const std::string_view prefix = until_zero(field_of(header, kTarPrefix));
    const bool is_posix = field_of(header, kTarMagic) == std::string_view("ustar\0", 6);
    return is_posix && !prefix.empty() ? std::string(prefix) + "/" + name : name;
  }

  /// Reads an extension header, which contains properties of the next file: either its long name, or pax
  /// records of the form "LENGTH KEY=VALUE\n".
  void read_extension(char type, int64_t at, int64_t bytes) {
    if (bytes > kTarMostName)
      fail(at - kTarBlock, fmt::format("an extension header of at most {} bytes", kTarMostName),
           fmt::format("a header of {} bytes", bytes));
    std::string text(bytes_at(at, bytes));
    if (type == 'L') {
      name_ = until_zero(text);
      return;
    }
    for (std::string_view rest = text; !rest.empty();) {
      size_t length = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      const auto digits = static_cast<size_t>(end - rest.data());
      if (error != std::errc() || length > rest.size() || length < digits + 3 || rest[digits] != ' ' ||
          rest[length - 1] != '\n')
        fail(at, "the records of a pax header", "damaged records");
      const std::string_view record = rest.substr(digits + 1, length - digits - 2);
      take_record(at, record.substr(0, record.find('=')),
                  record.substr(std::min(record.find('='), record.size() - 1) + 1));
      rest.remove_prefix(length);
    }
  }

  void take_record(int64_t at, std::string_view key, std::string_view value) {
    if (key == "path") name_ = until_zero(value);
    if (key.starts_with("GNU.sparse."))
      fail(at, "a regular file", "a sparse file of GNU tar; create the archive without --sparse");
    if (key != "size") return;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || end != value.data() + value.size() || size < 0)
      fail(at, "a file's size", "an invalid number");
    size_ = size;
  }

  const InputFile& file_;
  std::string window_;
  int64_t from_ = 0;             // offset in the file of the bytes in window_
  std::string name_;             // name of the next file, if an extension header gives it
  std::optional<int64_t> size_;  // size of the next file, if an extension header gives it
};

}  // namespace

std::vector<TarMember> list_tar(const InputFile& file) {
  std::vector<TarMember> members = TarWalk(file).run();
  file.check_unchanged();
  return members;
}

bool is_tar_file(const std::string& start) {
  return start.size() >= static_cast<size_t>(kTarBlock) && start.substr(kTarMagic.from, 5) == "ustar" &&
         has_right_sum(std::string_view(start).substr(0, kTarBlock));
}

}  // namespace dtrain
