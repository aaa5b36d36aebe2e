// Starts threads. If that fails, the error names the purpose of the thread and the limits that may apply.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace dtrain {

/// Returns std::thread(work). If the system cannot start the thread, throws Error with the thread's purpose
/// ("replica 7 of 8") and the limits that may apply.
template <class Work>
std::thread start_thread(const std::string& purpose, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw Error(purpose + ": the system cannot start another thread for this process (" +
                error.code().message() +
                "). The reason may be the limit on processes (ulimit -u), the limit pids.max of the control "
                "group, or a lack of memory");
  }
}

}  // namespace dtrain
