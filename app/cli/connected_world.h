// The World of several processes that a launcher has started.
#pragma once

#include "collective/process_world.h"
#include "processes/processes.h"

namespace dtrain {

/// Owns a World that communicates over the transport of `processes`, and connects this World with the control
/// channel. It reports the progress and the failure of this process to the control channel, and the control
/// channel interrupts the World when another process fails. `processes` must outlive this object. No other
/// object may use the transport until this object is destroyed.
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
