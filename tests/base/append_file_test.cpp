// Append-only files.
#include "base/files/append_file.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <sys/resource.h>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/files.h"
#include "support/temp_dir.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

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

TEST_CASE("append_file() appends all bytes or none") {
  const TempDir directory;
  const std::string path = directory / "file";
  append_file(path, "first\n");
  {
    const FileSizeLimit limit(10);
    CHECK_THROWS_WITH_AS(append_file(path, "second\n"), doctest::Contains(": could not be written: "), Error);
    CHECK(read_file(path) == "first\n");
    append_file(path, "2nd\n");
  }
  append_file(path, "third\n");
  CHECK(read_file(path) == "first\n2nd\nthird\n");
  std::filesystem::remove(path);
  CHECK_THROWS_AS(append_file(path + "/none", "x"), Error);
}
