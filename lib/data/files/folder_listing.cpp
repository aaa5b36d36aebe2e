#include "data/files/folder_listing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <sys/stat.h>

#include <fmt/format.h>
#include <isa-l/crc64.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "data/files/input_file.h"
#include "data/loader/parallel.h"

namespace dtrain {

namespace {

bool same_folder(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int64_t nanoseconds_of(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool is_link(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

ListedFile listed(const std::string& path, struct stat& status) {
  ListedFile file{path, 0, 0, ""};
  if (stat(path.c_str(), &status) != 0) {
    const int error = errno;
    const bool is_nothing = error == ENOENT || error == ENOTDIR;
    file.problem = is_nothing && is_link(path) ? "expected a file, found a broken link"
                   : is_nothing                ? "expected a file, found nothing"
                   : error == ELOOP            ? "expected a file, found a link that leads back to itself"
                                               : fmt::format("cannot be accessed: {}", std::strerror(error));
  } else if (!S_ISREG(status.st_mode)) {
    file.problem = fmt::format("expected a file, found {}", name_of_type(status.st_mode));
  } else {
    file.bytes = status.st_size;
    file.written_ns = nanoseconds_of(status.st_mtim);
    file.inode = status.st_ino;
    file.changed_ns = nanoseconds_of(status.st_ctim);
  }
  return file;
}

/// Lists a folder recursively.
class Walk {
 public:
  explicit Walk(const std::string& folder) : folder_(folder) {
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0)
      throw UserError(fmt::format("{}: cannot open the folder: {}", folder, std::strerror(errno)));
    if (!S_ISDIR(status.st_mode))
      throw UserError(fmt::format("{}: expected a folder, found {}", folder, name_of_type(status.st_mode)));
    const std::string problem = enter("", status);
    if (!problem.empty()) throw UserError(fmt::format("{}: {}", folder, problem));
  }

  std::vector<ListedFile> take() && { return std::move(files_); }

 private:
  struct Close {
    void operator()(DIR* open) const { closedir(open); }
  };

  /// Lists the folder at `path` (relative to the top folder, which is ""). Returns a message if the folder
  /// cannot be read, else "".
  std::string enter(const std::string& path, const struct stat& status) {
    const std::unique_ptr<DIR, Close> open(opendir(path_in(folder_, path).c_str()));
    if (!open) return fmt::format("cannot open the folder: {}", std::strerror(errno));
    above_.push_back(status);
    std::vector<std::string> names;
    while (const dirent* entry = readdir(open.get()))
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) add(path.empty() ? name : path + "/" + name);
    above_.pop_back();
    return "";
  }

  void add(std::string path) {
    struct stat status {};
    ListedFile file = listed(path_in(folder_, path), status);
    file.path = std::move(path);
    if (S_ISDIR(status.st_mode)) {
      const bool loop = std::any_of(above_.begin(), above_.end(),
                                    [&](const struct stat& one) { return same_folder(one, status); });
      file.problem =
          loop ? "expected files, found a link to a folder that contains the link" : enter(file.path, status);
      if (file.problem.empty()) return;
    }
    files_.push_back(std::move(file));
  }

  const std::string& folder_;
  std::vector<struct stat> above_;
  std::vector<ListedFile> files_;
};

}  // namespace

std::vector<ListedFile> list_folder(const std::string& folder) {
  return Walk(folder).take();
}

ListedFile list_file(const std::string& path) {
  struct stat status {};
  return listed(path, status);
}

std::vector<ListedFile> list_files(const std::vector<std::string>& paths) {
  std::vector<ListedFile> files(paths.size());
  run_blocks(static_cast<int64_t>(paths.size()), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    files[place] = list_file(paths[place]);
  });
  return files;
}

void check_readable(const std::string& path, const ListedFile& listed) {
  if (!listed.problem.empty()) throw UserError(path + ": " + listed.problem);
}

std::unique_ptr<const InputFile> open_listed(const std::string& path, const ListedFile& listed) {
  check_readable(path, listed);
  auto file = std::make_unique<const InputFile>(path);
  if (file->size() != listed.bytes || file->written_ns() != listed.written_ns)
    throw Error(fmt::format("{}: the file was changed while it was in use", path));
  return file;
}

std::string fingerprint_of(const FileListing& listing) {
  uint64_t digest = 0;
  for (const ListedFile& file : listing.files) {
    const std::string line =
        fmt::format("{}\n{} {} {} {}\n", file.path, file.bytes, file.written_ns, file.inode, file.changed_ns);
    digest = crc64_ecma_refl(digest, reinterpret_cast<const unsigned char*>(line.data()), line.size());
  }
  return fmt::format("{} {} files, {:016x}\n", listing.folder, listing.files.size(), digest);
}

std::string path_in(const std::string& folder, const std::string& path) {
  if (path.empty() || path.starts_with('/')) return path.empty() ? folder : path;
  return folder.empty() || folder.ends_with('/') ? folder + path : folder + "/" + path;
}

}  // namespace dtrain
