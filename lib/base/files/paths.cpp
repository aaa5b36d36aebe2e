#include "base/files/paths.h"

#include <filesystem>
#include <sys/stat.h>
#include <system_error>

#include "base/error.h"

namespace dtrain {

namespace fs = std::filesystem;

FileType file_type(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  switch (status.type()) {
    case fs::file_type::not_found:
      return FileType::nothing;
    case fs::file_type::none:
      throw UserError(path + ": could not be read: " + error.message());
    case fs::file_type::regular:
      return FileType::file;
    case fs::file_type::directory:
      return FileType::directory;
    default:
      return FileType::other;
  }
}

const char* name_of_type(mode_t mode) {
  return S_ISREG(mode)    ? "a file"
         : S_ISDIR(mode)  ? "a directory"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

const char* name_of_type(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? name_of_type(status.st_mode) : "nothing";
}

bool is_empty_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == 0;
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  if (error) throw UserError(path + ": could not be read: " + error.message());
  return real.string();
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error)
    throw UserError(path +
                    ": the path cannot be resolved, because the working directory cannot be determined: " +
                    error.message());
  return absolute.string();
}

std::string without_dots(const std::string& path) {
  const fs::path written(path), plain = written.lexically_normal();
  std::error_code error;
  // Compares the folders that contain the files, because fs::equivalent() fails for missing files and pipes.
  const bool is_folder = fs::is_directory(written, error);
  const fs::path from = is_folder ? written : written.parent_path(),
                 to = is_folder ? plain : plain.parent_path();
  const bool leads_elsewhere = fs::exists(from, error) && !fs::equivalent(from, to, error);
  return leads_elsewhere ? path : plain.string();
}

}  // namespace dtrain
