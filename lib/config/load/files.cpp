#include "config/load/files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/files/paths.h"
#include "config/load/environment.h"
#include "config/yaml/text.h"
#include "config/yaml/yaml.h"

namespace fs = std::filesystem;

namespace dtrain {

namespace {

/// Returns a description of the file's type if a file of this type cannot be read up to its end. Returns ""
/// for regular files, and for pipes, which end when the writer closes them.
std::string_view rejected_kind(mode_t mode) {
  if (S_ISREG(mode) || S_ISFIFO(mode)) return "";
  return S_ISDIR(mode) ? "it is a directory" : S_ISSOCK(mode) ? "it is a socket" : "it is a device";
}

/// Reads a nonblocking descriptor of a file or pipe until its end, or until `bytes` is full. If a pipe has a
/// writer, waits without a time limit for its data, because a process substitution may be slow. If no
/// writer has opened the pipe yet, waits only briefly. Returns an error message, or "" on success.
std::string read_all(int file, std::string& bytes) {
  constexpr int kPollMilliseconds = 20, kMostPolls = 50;
  size_t size = 0;
  bool somebody_writes = false;
  for (int polls = 0; size < bytes.size();) {
    const ssize_t got = ::read(file, bytes.data() + size, bytes.size() - size);
    if (got > 0) {
      somebody_writes = true;
      size += static_cast<size_t>(got);
    } else if (got == 0) {
      struct stat status {};
      const bool pipe = ::fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
      if (!pipe || somebody_writes) break;
      if (++polls > kMostPolls) return "it is a pipe without a writer";
      ::poll(nullptr, 0, kPollMilliseconds);
    } else if (errno == EAGAIN) {
      somebody_writes = true;
      pollfd ready{.fd = file, .events = POLLIN, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return std::strerror(errno);
    }
  }
  bytes.resize(size);
  return "";
}

/// Returns the bytes of the file, up to kMaxConfigBytes + 1 bytes. If the file cannot be read, reports the
/// reason and returns nullopt.
std::optional<std::string> read_bytes(const std::string& path, const Mark& named_at,
                                      Diagnostics& diagnostics) {
  const auto fail = [&](std::string_view why) {
    diagnostics.error(named_at, fmt::format("cannot read the configuration file '{}': {}", path, why));
    return std::nullopt;
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (file < 0) {
    if (errno == ENOENT) return fail("there is no such file" + suggestion_beside(path));
    return fail(errno == ENXIO ? "it is a socket" : std::strerror(errno));
  }
  struct stat status {};
  std::string bytes(kMaxConfigBytes + 1, '\0');
  std::string why =
      ::fstat(file, &status) == 0 ? std::string(rejected_kind(status.st_mode)) : std::strerror(errno);
  if (why.empty()) why = read_all(file, bytes);
  ::close(file);
  if (!why.empty()) return fail(why);
  return bytes;
}

}  // namespace

std::string suggestion_beside(const std::string& missing) {
  const fs::path path(missing);
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());  // the order of directory entries is unspecified
  return file_suggestion(path.filename().string(), names);
}

std::string beside(std::string_view name, const Mark& named_at) {
  const fs::path path(name);
  if (path.is_absolute() || !named_at.file || named_at.line == 0) return path.string();
  return (fs::path(*named_at.file).parent_path() / path).string();
}

ConfigNode read_config_file(const std::string& path, const Mark& named_at, Diagnostics& diagnostics) {
  const auto bytes = read_bytes(path, named_at, diagnostics);
  return bytes ? expand_environment(parse_yaml(*bytes, path, diagnostics), diagnostics) : ConfigNode();
}

bool may_be_file(std::string_view key) {
  static constexpr std::array<std::string_view, 3> kKeys = {"model", "dataset", "strategy"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

ConfigNode include_file(const ConfigNode& value, Diagnostics& diagnostics) {
  if (!value.is_scalar()) return value;
  const std::string& name = value.text();
  const bool is_path =
      name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
  if (!is_path) return value;
  return read_config_file(without_dots(beside(name, value.mark())), value.mark(), diagnostics);
}

std::string find_file(std::string_view name, const Mark& named_at) {
  std::string first = beside(name, named_at);
  std::error_code ignored;
  if (fs::exists(first, ignored) || fs::path(name).is_absolute()) return first;
  if (const char* folder = std::getenv("DTRAIN_DATA"); folder && *folder) {
    const fs::path second = fs::path(folder) / name;
    if (fs::exists(second, ignored)) return second.string();
  }
  return first;
}

}  // namespace dtrain
