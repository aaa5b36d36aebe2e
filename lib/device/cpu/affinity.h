// Which cores threads run on.
#pragma once

#include <string>
#include <thread>
#include <vector>

namespace dtrain::cpu {

/// The cores that the calling thread may run on now.
std::vector<int> thread_cores();

/// Binds the calling thread to these cores. Cores that the system refuses leave it where it is: slower at
/// worst.
void bind_thread(const std::vector<int>& cores);

/// Binds the calling thread to these cores, and where it was before at the end: unless another thread ends
/// it.
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

/// The cores in a list as Linux writes it: "0-3,8,10-11". Empty for other text.
std::vector<int> parse_core_list(const std::string& text);

}  // namespace dtrain::cpu
