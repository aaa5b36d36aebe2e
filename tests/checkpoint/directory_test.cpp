// Names of checkpoints, and writing of checkpoints to their directory.
#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error.h"
#include "sample.h"

namespace dtrain {
using namespace test;

TEST_CASE("checkpoints are listed by step") {
  const TempDir directory;
  CHECK(checkpoint_name(782) == "ckpt-00000782.h5");
  CHECK(checkpoint_step("ckpt-00000782.h5") == 782);
  CHECK(checkpoint_step("ckpt-782.h5") == std::nullopt);
  CHECK(list_checkpoints(directory / "missing").empty());
  for (const char* name :
       {"ckpt-00000010.h5", "ckpt-00000009.h5", "ckpt-123456789.h5", "ckpt-10.h5", "ckpt-00000011.h5.bak",
        ".ckpt-00000012.h5.dtrain-tmp-1-00000001", "ckpt-0000000x.h5", "best.h5"})
    write_file(directory / name, "");
  const std::vector<std::string> expected{directory / "ckpt-00000009.h5", directory / "ckpt-00000010.h5",
                                          directory / "ckpt-123456789.h5"};
  CHECK(list_checkpoints(directory.path()) == expected);
}

TEST_CASE(
    "temporary files of ended processes are removed, and temporary files of running processes are kept") {
  const TempDir directory;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  const auto temporary = [&](const std::string& writer) {
    return directory / (".ckpt-00000001.h5.dtrain-tmp-" + writer + "-0123abcd");
  };
  const std::string dead = temporary(std::to_string(child)), living = temporary(std::to_string(::getppid())),
                    other = temporary("no-number");
  for (const std::string& path : {dead, living, other}) write_file(path, "x");
  save_checkpoint(directory / "ckpt-00000002.h5", Sample().content);
  CHECK(!std::filesystem::exists(dead));
  CHECK(std::filesystem::exists(living));
  CHECK(std::filesystem::exists(other));
}

/// Limits the file size of this process for the lifetime of the object. A write beyond the limit is
/// incomplete, and the next write fails, as on a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST_CASE("after a failed write, only the old file exists") {
  const TempDir directory;
  Sample sample;
  save_checkpoint(directory / "a.h5", sample.content);
  const std::string before = read_file(directory / "a.h5");
  sample.bias[0] = 9;
  for (const size_t limit : {size_t{0}, size_t{100}, size_t{512}, size_t{600}, before.size() - 1}) {
    CAPTURE(limit);
    std::string message;
    {
      const FileLimit full(limit);
      try {
        save_checkpoint(directory / "a.h5", sample.content);
      } catch (const Error& error) {
        message = error.what();
      }
    }
    CHECK(message.find(directory / "a.h5") != std::string::npos);
    CHECK(message.find("File too large") != std::string::npos);
    CHECK(read_file(directory / "a.h5") == before);
    CHECK(directory.entries() == 1);
  }
  save_checkpoint(directory / "a.h5", sample.content);
  CHECK(read_file(directory / "a.h5") != before);
}

TEST_CASE("saving into a missing directory is an error") {
  const TempDir directory;
  CHECK_THROWS_WITH_AS(save_checkpoint(directory / "no/a.h5", {}), doctest::Contains("No such file"), Error);
}
}  // namespace dtrain
