#include "sweep/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr int kNotStarted = 127;

/// Runs in the child process between fork and exec. Calls only async-signal-safe functions, because another
/// thread of the parent may have held a lock at the time of the fork.
[[noreturn]] void become(char* const* arguments, int input, int output, const cpu_set_t* cores,
                         pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotStarted);  // the parent ended before PR_SET_PDEATHSIG took effect
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::sched_setaffinity(0, sizeof(cpu_set_t), cores);
  if (::dup2(input, STDIN_FILENO) >= 0 && ::dup2(input, STDOUT_FILENO) >= 0 &&
      ::dup2(output, STDERR_FILENO) >= 0)
    ::execv(kThisProgram, arguments);
  ::_exit(kNotStarted);
}

/// An RAII file descriptor.
class Opened {
 public:
  Opened(const char* path, int flags) : fd_(::open(path, flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0)
      throw Error(fmt::format("{}: cannot be opened: {}", path, std::generic_category().message(errno)));
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::string& error_file,
                           const std::vector<int>& cores) {
  std::vector<std::string> words{"dtrain"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores)
    if (core < CPU_SETSIZE) CPU_SET(static_cast<size_t>(core), &set);
  const Opened nothing("/dev/null", O_RDWR), errors(error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) become(pointers.data(), nothing.get(), errors.get(), &set, parent);
  if (process_ < 0)
    throw Error(fmt::format("a child process cannot be started: {}", std::generic_category().message(errno)));
}

ChildProcess::~ChildProcess() {
  wait();
}

void ChildProcess::signal(int number) const {
  if (!ended_) ::kill(process_, number);
}

bool ChildProcess::has_ended() {
  return ended_ || take_end(WNOHANG);
}

void ChildProcess::wait() {
  while (!ended_) take_end(0);
}

bool ChildProcess::take_end(int options) {
  int status = 0;
  const pid_t found = ::waitpid(process_, &status, options);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  ended_ = true;
  constexpr int kSignalled = 128;
  if (found < 0) {
    exit_code_ = 1;
  } else {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
  }
  return true;
}

}  // namespace dtrain
