// The slots of a replica that is divided among processes, and the channels between them.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "collective/channel.h"
#include "collective/link.h"
#include "collective/world.h"
#include "device/device.h"

namespace dtrain {

/// Makes the ends of channels that are in this process. Arrays are sent as messages of the World. In each
/// part of a plan, forward or backward, one slot sends its messages to another in a fixed order, so they
/// share one channel of the World.
class RemoteSlots {
 public:
  /// `processes`: the process of each slot. `replica`: rank of the replica. All processes need equal
  /// arguments, and replicas * slots * slots * 2 <= World::kChannels.
  RemoteSlots(World& world, std::vector<int> processes, int replica);
  ~RemoteSlots();

  bool is_here(int slot) const { return process_of(slot) == world_.rank(); }
  /// Creates this process's end of a channel between a slot of this process and a slot of another one.
  /// `backward`: whether the arrays are sent in backward parts. `mine`: context of the slot of this process.
  /// The other arguments are those of Link. The receiving end receives up to `most` arrays early. Not
  /// thread-safe.
  std::unique_ptr<Channel> make_channel(int from, int to, bool backward, Context& mine, size_t bytes,
                                        Link::Keeping keeping, int most);
  /// Returns whether this process's end of such a channel keeps copies in host memory, one of `bytes` for
  /// each of `most` arrays.
  bool copies(int from, const Context& mine, Link::Keeping keeping) const;

 private:
  struct Entry;
  class Sender;
  class Receiver;
  /// Receiving ends, in the order in which their next arrays will be sent. Used by the receiving slot's
  /// thread.
  struct Inbox {
    std::deque<Receiver*> expected;
    void post();
  };

  std::vector<Entry> make_entries(int process, int channel, Context& mine, int most);
  int process_of(int slot) const { return processes_[static_cast<size_t>(slot)]; }

  World& world_;
  const std::vector<int> processes_;
  const int replica_;
  std::map<int, Inbox> inboxes_;  // indexed by number of the World's channel
};

}  // namespace dtrain
