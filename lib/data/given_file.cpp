#include "data/given_file.h"

#include <algorithm>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "config/yaml/scalar.h"
#include "data/files/input_file.h"
#include "data/files/json_lines.h"
#include "data/pictures/open_pictures.h"
#include "data/pictures/tar_index.h"
#include "data/readers/csv/text.h"
#include "data/readers/file_pattern.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

constexpr size_t kStart = 512;

/// Returns the first bytes of the file, decompressed.
std::string start_of(const std::string& path) {
  InputStream stream(path);
  std::string start(kStart, '\0');
  start.resize(stream.read(start.data(), start.size()));
  return start;
}

/// Returns true if HDF5's signature is at an offset that the format allows: 0, or after a user block of 512,
/// 1024, 2048, ... bytes.
bool is_hdf5(const std::string& path) {
  const InputFile file(path);
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  std::string found(kSignature.size(), '\0');
  for (int64_t at = 0; at + static_cast<int64_t>(found.size()) <= file.size(); at = at == 0 ? 512 : 2 * at) {
    file.read(at, found.data(), found.size());
    if (found == kSignature) return true;
  }
  return false;
}

FileFormat format_of(const std::string& path, const std::string& start) {
  reject_parquet(path, start);
  if (is_hdf5(path)) return FileFormat::hdf5;
  if (start.starts_with("\x93NUMPY")) return FileFormat::npy;
  if (is_picture_file({reinterpret_cast<const uint8_t*>(start.data()), start.size()}))
    return FileFormat::picture;
  if (is_tar_file(start)) return FileFormat::tar;
  if (is_idx(start)) return FileFormat::idx;
  if (!start.empty() && start.find('\0') == std::string::npos) return FileFormat::text;
  if (start.empty()) throw UserError(fmt::format("{}: no data found; expected {}", path, kGivenFiles));
  reject_utf16(path, start);
  return FileFormat::other;
}

/// Corrects the location in an error message about a table that was made from JSON lines. `at` is the index
/// of the location ":LINE:COLUMN", which refers to the table. It is replaced by ":LINE", the line number in
/// the JSON lines. The two line numbers differ by 1 if the table has a header. The column number is removed
/// because it has no meaning in the JSON lines.
void renumber(std::string& message, size_t at, bool has_header) {
  constexpr const char* kDigits = "0123456789";
  const size_t first = at + 1, end = message.find_first_not_of(kDigits, first);
  int64_t line = 0;
  if (message[at] != ':' || end == std::string::npos ||
      parse_number(message.substr(first, end - first), line) != std::errc())
    return;
  const size_t after = message.find_first_not_of(kDigits, end + 1);
  const bool has_column = message[end] == ':' && after != std::string::npos && after > end + 1;
  message.replace(first, (has_column ? after : end) - first, std::to_string(has_header ? line - 1 : line));
}

/// Returns true if the extension of the file says that the file contains JSON.
bool has_name_of_json(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

std::string text_of_file(const std::string& path) {
  InputStream stream(path);
  return read_rest(stream);
}

}  // namespace

std::vector<std::string> find_given_paths(const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    if (name.empty())
      throw UserError("--input: expected the name of a file or a folder, found an empty name");
    const bool is_there = name == kStandardStream || file_type(name) != FileType::nothing;
    for (const std::string& one : is_there ? std::vector{name} : expand_braces(name)) {
      const bool is_pattern = !is_there && one.find_first_of("*?[") != std::string::npos;
      const std::vector<std::string> found = is_pattern ? matching_files("", one) : std::vector{one};
      if (found.empty())
        throw UserError(fmt::format("{}: expected files that match this pattern, found none", one));
      paths.insert(paths.end(), found.begin(), found.end());
    }
  }
  return paths;
}

GivenFiles open_given_files(const std::vector<std::string>& paths) {
  if (std::count(paths.begin(), paths.end(), kStandardStream) > 1)
    throw UserError("-: standard input is given more than once, but can be read only once");
  GivenFiles files;
  for (const std::string& path : paths) files.emplace_back(path);
  return files;
}

GivenFile::GivenFile(std::string name) : name_(std::move(name)), path_(name_) {
  if (name_ == kStandardStream) {
    name_ = "standard input";
    path_ = memory_.emplace(MemoryFile::read_from(STDIN_FILENO)).path();
  }
  if (file_type(path_) == FileType::directory) {
    format_ = FileFormat::picture;
    return;
  }
  with_names([&] {
    const std::string start = start_of(path_);
    format_ = format_of(path_, start);
    if (format_ == FileFormat::text && may_be_json_lines(start)) read_json_lines(text_of_file(path_));
  });
}

void GivenFile::read_json_lines(const std::string& text) {
  if (!dtrain::is_json_lines(text) && !has_name_of_json(name_)) return;
  if (has_nested_arrays(text)) {
    for (JsonArray& array : arrays_of_json_lines(text, name_))
      arrays_.push_back({std::move(array.name), std::move(array.shape), array.type, MemoryFile(array.data)});
    return;
  }
  const TableText table = table_of_json_lines(text, name_);
  path_ = memory_.emplace(table.text).path();
  table_ = TextOptions{table.has_header, ','};
}

TextOptions GivenFile::text_options(const TextOptions& options) const {
  const bool has_options = options.header || options.delimiter;
  if (has_options && (format_ != FileFormat::text || is_json_lines()))
    throw UserError(fmt::format(
        "{}: a header or a delimiter was given, but this file is not delimited text; remove the option",
        name_));
  return table_.value_or(options);
}

std::string GivenFile::renamed(std::string message) const {
  if (path_ == name_) return message;
  for (size_t at = 0; (at = message.find(path_, at)) != std::string::npos; at += name_.size()) {
    message.replace(at, path_.size(), name_);
    if (table_) renumber(message, at + name_.size(), *table_->header);
  }
  return message;
}

}  // namespace dtrain
