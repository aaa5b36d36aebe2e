#include "train/run_directory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <span>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory_lock.h"
#include "checkpoint/file.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {
void write_text(const std::string& path, const std::string& text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file(path, {&bytes, 1});
}
}  // namespace

std::optional<RunDirectory> RunDirectory::around(const std::string& checkpoint_file) {
  const fs::path parent = fs::absolute(checkpoint_file).parent_path();
  if (parent.filename() != "checkpoints") return std::nullopt;
  return RunDirectory(parent.parent_path().string());
}

std::string RunDirectory::checkpoint_path(int64_t step) const {
  return checkpoint_directory() + "/" + checkpoint_name(step);
}

std::vector<std::string> RunDirectory::checkpoints() const {
  return list_checkpoints(checkpoint_directory());
}

void RunDirectory::create() const {
  std::error_code error;
  fs::create_directories(checkpoint_directory(), error);
  if (error) throw UserError(fmt::format("{}: cannot be made: {}", checkpoint_directory(), error.message()));
}

RunDirectory::Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

RunDirectory::Lock RunDirectory::lock() const {
  create();
  const int fd = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw UserError(fmt::format("{}: cannot be opened: {}", path_, std::strerror(errno)));
  // Some file systems know no locks.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd);
    throw UserError(
        fmt::format("{}: another dtrain is training there; give another directory: --output", path_));
  }
  return Lock(fd);
}

void RunDirectory::write_config(const std::string& yaml) const {
  write_text(path_ + "/config.yaml", yaml);
}

void RunDirectory::write_metrics(const std::string& lines) const {
  write_text(path_ + "/metrics.jsonl", lines);
}

void RunDirectory::append_metrics(std::string_view line) const {
  std::ofstream file(path_ + "/metrics.jsonl", std::ios::binary | std::ios::app);
  file << line << std::flush;
  if (!file)
    throw Error(fmt::format("{}/metrics.jsonl: could not be written: {}", path_, std::strerror(errno)));
}

void RunDirectory::prune(int64_t keep, std::optional<int64_t> best) const {
  // Somebody is about to read the newest one there is; the next save removes what this one does not.
  const DirectoryLock lock(checkpoint_directory(), DirectoryLock::Kind::alone);
  if (lock.refused()) return;
  const std::vector<std::string> all = checkpoints();
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    if (best && fs::path(all[i]).filename() == checkpoint_name(*best)) continue;
    std::error_code ignored;  // one too many does no harm
    fs::remove(all[i], ignored);
  }
}

std::vector<std::string> RunDirectory::set_aside_after(int64_t step) const {
  std::vector<std::string> aside;
  for (const std::string& path : checkpoints()) {
    if (checkpoint_step(fs::path(path).filename()) <= step) continue;
    std::string name = path + ".set-aside";
    for (int n = 2; fs::exists(name); ++n) name = fmt::format("{}.set-aside-{}", path, n);
    std::error_code error;
    fs::rename(path, name, error);
    if (error) throw Error(fmt::format("{}: cannot be renamed: {}", path, error.message()));
    aside.push_back(name);
  }
  return aside;
}

void RunDirectory::clear() const {
  for (const std::string& path : checkpoints()) fs::remove(path);
  for (const char* name : {"config.yaml", "metrics.jsonl"}) fs::remove(fs::path(path_) / name);
}

}  // namespace dtrain
