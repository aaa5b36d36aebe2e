#include "config/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "config/environment.h"
#include "config/load.h"
#include "config/text.h"

namespace fs = std::filesystem;

namespace dtrain {

namespace {

/// `name` as seen from the file that names it; from the working directory where no file does (a --set).
fs::path beside(std::string_view name, const Mark& named_at) {
  const fs::path path(name);
  if (path.is_absolute() || !named_at.file || named_at.line == 0) return path;
  return fs::path(*named_at.file).parent_path() / path;
}

/// For a name that does not exist: the nearest in its folder.
std::string suggested_file(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());  // a folder has no order of its own
  return suggestion(path.filename().string(), names);
}

/// The file's bytes, one more than is allowed at most; nothing, and the reason reported, where it cannot be
/// read.
std::optional<std::string> read_bytes(const std::string& path, const Mark& named_at,
                                      Diagnostics& diagnostics) {
  const auto fail = [&](std::string_view why) {
    diagnostics.error(named_at, fmt::format("cannot read the configuration file '{}': {}", path, why));
    return std::nullopt;
  };
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fail("it is a directory");
  if (!fs::exists(path, ignored)) return fail("there is no such file" + suggested_file(path));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(std::strerror(errno ? errno : EIO));
  std::string bytes(kMaxConfigBytes + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) return fail("reading failed");
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

}  // namespace

Node read_config_file(const std::string& path, const Mark& named_at, Diagnostics& diagnostics) {
  const auto bytes = read_bytes(path, named_at, diagnostics);
  return bytes ? expand_environment(parse_yaml(*bytes, path, diagnostics), diagnostics) : Node();
}

bool may_be_file(std::string_view key) {
  static constexpr std::array<std::string_view, 3> kKeys = {"model", "dataset", "strategy"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

Node include_file(const Node& value, Diagnostics& diagnostics) {
  if (!value.is_scalar()) return value;
  const std::string& name = value.text();
  const bool is_path =
      name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
  if (!is_path) return value;
  return read_config_file(beside(name, value.mark()).lexically_normal().string(), value.mark(), diagnostics);
}

std::string find_file(std::string_view name, const Mark& named_at) {
  const std::string first = beside(name, named_at).string();
  std::error_code ignored;
  if (fs::exists(first, ignored) || fs::path(name).is_absolute()) return first;
  if (const char* folder = std::getenv("DTRAIN_DATA"); folder && *folder) {
    const fs::path second = fs::path(folder) / name;
    if (fs::exists(second, ignored)) return second.string();
  }
  return first;
}

}  // namespace dtrain
