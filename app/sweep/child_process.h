// Runs this program as a child process.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace dtrain {

/// A process that runs this program with other arguments. It has no standard input or output; standard error
/// goes to a file. The child leads a new process group, so that Ctrl-C in a terminal reaches only the parent.
/// The child receives SIGTERM if the thread that started it ends, and its threads run on the given cores.
class ChildProcess {
 public:
  /// Throws Error if the process cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& error_file,
               const std::vector<int>& cores);
  ~ChildProcess();  // waits for the child
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void signal(int number) const;
  /// Returns true if the child has ended. Does not wait.
  bool has_ended();
  /// Waits until the child ends.
  void wait();
  /// Returns the child's exit code, or 128 plus the number of the signal that ended it. Valid only after the
  /// child has ended.
  int exit_code() const { return exit_code_; }

 private:
  bool take_end(int options);

  pid_t process_ = -1;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace dtrain
