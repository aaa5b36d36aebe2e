// Append-only files.
#include "base/files/append_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"

using namespace dtrain;

namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Limits the file size of this process to `bytes` for the lifetime of the object.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace

TEST_CASE("what cannot be appended as a whole is not appended at all") {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("dtrain-append-{}", ::getpid())).string();
  std::filesystem::remove(path);
  append_file(path, "first\n");
  {
    const FileSizeLimit limit(10);
    CHECK_THROWS_WITH_AS(append_file(path, "second\n"), doctest::Contains(": could not be written: "), Error);
    CHECK(text_of(path) == "first\n");
    append_file(path, "2nd\n");
  }
  append_file(path, "third\n");
  CHECK(text_of(path) == "first\n2nd\nthird\n");
  std::filesystem::remove(path);
  CHECK_THROWS_AS(append_file(path + "/none", "x"), Error);
}
