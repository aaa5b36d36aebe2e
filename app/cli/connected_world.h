// The World of several processes that a launcher has started.
#pragma once

#include "collective/process_world.h"
#include "processes/processes.h"

namespace dtrain {

/// Owns the World over the transport of `processes`, and connects it with their control channel: reports
/// this process's failure and progress there, and learns of other processes' failures. `processes` must
/// outlive this object, and nothing else may use their transport until this object is destroyed.
class ConnectedWorld {
 public:
  explicit ConnectedWorld(Processes& processes);
  ~ConnectedWorld();
  ConnectedWorld(const ConnectedWorld&) = delete;
  ConnectedWorld& operator=(const ConnectedWorld&) = delete;

  World& world() { return world_; }

 private:
  ControlChannel& control_;
  ProcessWorld world_;
};

}  // namespace dtrain
