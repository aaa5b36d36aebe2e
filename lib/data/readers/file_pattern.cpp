#include "data/readers/file_pattern.h"

#include <algorithm>
#include <glob.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "config/yaml/scalar.h"

namespace dtrain {

namespace {

constexpr size_t kMostFiles = 100000;

/// Returns the position of the closing brace for the brace at `open`; npos if there is none.
size_t closing_brace(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) return i;
  }
  return std::string::npos;
}

/// Splits a text at commas outside of nested braces.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// Expands a range such as 000..009 to its numbers. Returns an empty list if the text is not a range.
std::vector<std::string> numbers_of(const std::string& text) {
  const size_t dots = text.find("..");
  int64_t first = 0, last = 0;
  if (dots == std::string::npos) return {};
  const std::string from = text.substr(0, dots), to = text.substr(dots + 2);
  if (parse_number(from, first) != std::errc() || parse_number(to, last) != std::errc() || first < 0 ||
      last < 0)
    return {};
  const auto count = static_cast<uint64_t>(std::max(first, last) - std::min(first, last));
  if (count >= kMostFiles)
    throw UserError(fmt::format("{{{}}}: expected at most {} files, found {}", text, kMostFiles, count + 1));
  const bool is_padded = (from.size() > 1 && from[0] == '0') || (to.size() > 1 && to[0] == '0');
  const size_t width = is_padded ? std::max(from.size(), to.size()) : 1;
  std::vector<std::string> all;
  for (int64_t i = first;; i += first < last ? 1 : -1) {
    all.push_back(fmt::format("{:0{}}", i, width));
    if (i == last) return all;
  }
}

std::vector<std::string> find_matching(const std::string& name, const ReadRequest& request) {
  const size_t special = name.find_first_of("*?[");
  if (special == std::string::npos) return {request.find_any(name)};
  const size_t slash = name.rfind('/', special);
  const std::string folder = slash == std::string::npos ? "." : name.substr(0, std::max<size_t>(slash, 1));
  const std::string found = request.find(folder);
  std::vector<std::string> paths =
      matching_files(found, name.substr(slash == std::string::npos ? 0 : slash + 1));
  if (paths.empty())
    request.fail(fmt::format("{}: expected files that match this pattern in {}, found none", name, found));
  return paths;
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& name) {
  for (size_t open = name.find('{'); open != std::string::npos; open = name.find('{', open + 1)) {
    const size_t close = closing_brace(name, open);
    if (close == std::string::npos) break;
    const std::string inner = name.substr(open + 1, close - open - 1);
    std::vector<std::string> parts = numbers_of(inner), all;
    if (parts.empty()) parts = parts_of(inner);
    if (parts.size() == 1 && inner.find("..") == std::string::npos) continue;  // {a} is kept as it is written
    for (const std::string& part : parts)
      for (std::string& one : expand_braces(name.substr(0, open) + part + name.substr(close + 1))) {
        if (all.size() == kMostFiles)
          throw UserError(fmt::format("{}: expected at most {} files, found more", name, kMostFiles));
        all.push_back(std::move(one));
      }
    return all;
  }
  return {name};
}

std::vector<std::string> matching_files(const std::string& folder, const std::string& pattern) {
  std::string escaped;
  for (const char c : folder) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  glob_t found{};
  const int failed = glob(path_in(escaped, pattern).c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths;
  if (failed == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (failed == GLOB_NOSPACE) throw std::bad_alloc();
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> find_files(const std::string& name, const ReadRequest& request) {
  std::vector<std::string> paths;
  for (const std::string& one : expand_braces(name))
    for (std::string& path : find_matching(one, request)) paths.push_back(std::move(path));
  return paths;
}

}  // namespace dtrain
