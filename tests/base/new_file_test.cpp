#include "base/files/new_file.h"

#include <csignal>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "support/files.h"
#include "support/temp_dir.h"

namespace dtrain::test {

namespace {

namespace fs = std::filesystem;

/// Returns the PID of a process that has ended.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

}  // namespace

TEST_CASE("an unfinished new file leaves the old file unchanged") {
  const TempDir folder;
  const std::string path = folder / "file";
  write_file(path, "before");
  {
    NewFile file(path);
    file.append("abc", 3);
    CHECK(read_file(path) == "before");
    CHECK(folder.entries() == 2);
  }
  CHECK(read_file(path) == "before");
  CHECK(folder.entries() == 1);
  NewFile file(path);
  file.append("abcd", 4);
  file.append("ef", 2);
  file.write(1, "X", 1);
  CHECK(file.appended() == 6);
  file.finish();
  CHECK(read_file(path) == "aXcdef");
  CHECK(folder.entries() == 1);
  CHECK_THROWS_AS(NewFile(folder / "missing/file"), UserError);
  fs::create_directory(folder / "taken");
  NewFile over(folder / "taken");
  CHECK_THROWS_AS(over.finish(), Error);
}

TEST_CASE("temporary files of ended processes are removed, and other files are kept") {
  const TempDir folder;
  const pid_t dead = dead_process();
  const std::string left = folder / fmt::format(".a.dtrain-tmp-{}-0123abcd", dead);
  // This file was left by an earlier process that had the same PID as this process.
  const std::string own = folder / fmt::format(".c.dtrain-tmp-{}-0123abcd", ::getpid());
  const std::string alive = folder / ".d.dtrain-tmp-1-00000000";
  std::vector<std::string> others{folder / ".dtrain-tmp-", folder / ".a.dtrain-tmp-",
                                  folder / ".dtrain-tmp-1-00000000"};
  for (const char* name :
       {".a.tmp-{}", ".a.tmp-{}-0123abcd", ".a.dtrain-tmp-{}", ".a.dtrain-tmp-{}-xyz",
        ".a.dtrain-tmp-{}-0123abc", ".a.dtrain-tmp-{}-0123abcd ", "a.dtrain-tmp-{}-0123abcd",
        ".a.dtrain-tmp-0{}-0123abcd", ".a.dtrain-tmp--{}-0123abcd"})
    others.push_back(folder / fmt::format(fmt::runtime(name), dead));
  for (const std::string& path : {left, own, alive}) write_file(path, "x");
  for (const std::string& path : others) write_file(path, "x");
  NewFile(folder / "h", Leftovers::kept).finish();
  for (const std::string& path : {left, own}) CHECK(fs::exists(path));
  NewFile writing(folder / "g");
  NewFile beside(folder / "g");  // another writer of the same file at the same time
  CHECK(fs::exists(writing.temporary()));
  CHECK(fs::exists(beside.temporary()));
  for (const std::string& path : {left, own}) CHECK_FALSE(fs::exists(path));
  CHECK(fs::exists(alive));
  for (const std::string& path : others) CHECK(fs::exists(path));
}

TEST_CASE("a temporary file is kept if a process in another container is writing it") {
  const TempDir folder;
  NewFile writing(folder / "file");
  // The file belongs to a process in another PID namespace, such as a container. In the PID namespace of this
  // process, no process has the PID in the file's name.
  const std::string foreign = folder / fmt::format(".file.dtrain-tmp-{}-00000001", dead_process());
  fs::create_hard_link(writing.temporary(), foreign);
  remove_leftovers(folder / "file");
  CHECK(fs::exists(foreign));
  writing.finish();
  remove_leftovers(folder / "file");
  CHECK_FALSE(fs::exists(foreign));
}

TEST_CASE("a file name may have the file system's maximum length") {
  const TempDir folder;
  const std::string path = folder / std::string(255, 'n');
  NewFile file(path);
  file.append("abc", 3);
  file.finish();
  CHECK(read_file(path) == "abc");
}

TEST_CASE("files can be created in a folder without read permission") {
  const TempDir folder;
  fs::permissions(folder.path(), fs::perms(0333));
  // The test runs as another user, because root may write to any folder.
  constexpr uid_t kNobody = 65534;
  const uid_t user = ::geteuid();
  if (user == 0) REQUIRE(::seteuid(kNobody) == 0);
  {
    NewFile file(folder / "file");
    file.append("abc", 3);
    CHECK_NOTHROW(file.finish());
  }
  REQUIRE(::seteuid(user) == 0);
  fs::permissions(folder.path(), fs::perms::owner_all);
  CHECK(read_file(folder / "file") == "abc");
}

}  // namespace dtrain::test
