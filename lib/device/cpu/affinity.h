// CPU affinity of threads.
#pragma once

#include <string>
#include <thread>
#include <vector>

namespace dtrain::cpu {

/// Returns the cores that the calling thread may currently run on.
std::vector<int> thread_cores();

/// Binds the calling thread to these cores. If the system rejects the cores, the affinity does not change.
/// The thread may then be slower, but still works.
void bind_thread(const std::vector<int>& cores);

/// Binds the calling thread to these cores as long as the object exists. The destructor restores the previous
/// affinity, but only if it runs on the same thread.
class BoundThread {
 public:
  explicit BoundThread(const std::vector<int>& cores);
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  std::thread::id thread_;
  std::vector<int> before_;
};

/// Parses a list of cores as Linux writes it: "0-3,8,10-11". Returns an empty vector if the text is
/// malformed.
std::vector<int> parse_core_list(const std::string& text);

}  // namespace dtrain::cpu
