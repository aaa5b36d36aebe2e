// This program, started again.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace dtrain {

/// A process that runs this program with other arguments. It has no standard input or output; standard error
/// goes to a file. The child leads a new process group, so that a terminal's Ctrl-C reaches the parent
/// alone, and it gets SIGTERM if the thread that started it ends. Threads that it starts run on the cores
/// given.
class ChildProcess {
 public:
  /// Throws Error where the process cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& error_file,
               const std::vector<int>& cores);
  ~ChildProcess();  // waits for it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void signal(int number) const;
  /// Returns whether the child has ended, without waiting.
  bool has_ended();
  /// Waits until the child ends.
  void wait();
  /// Its exit code, or 128 and the number of the signal that ended it. Once it has ended.
  int exit_code() const { return exit_code_; }

 private:
  bool take_end(int options);

  pid_t process_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace dtrain
