// The World of several processes that a launcher has started.
#pragma once

#include "collective/process_world.h"
#include "processes/processes.h"

namespace dtrain {

/// Joins the messages among processes with the control channel, which learns about this process's failure and
/// progress. The processes must outlive it; until it is destroyed, it alone may use their transport.
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
