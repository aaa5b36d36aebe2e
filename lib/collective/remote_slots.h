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

/// Creates this process's ends of the channels to and from slots of other processes. Arrays are sent as
/// messages of the World. In each part of a plan (forward or backward), a slot sends its messages to another
/// slot in a fixed order, so these messages can share one channel of the World.
class RemoteSlots {
 public:
  /// `processes`: the process of each slot. `replica`: rank of the replica. All processes must pass equal
  /// arguments. `replicas * slots * slots * 2` must be at most World::kChannels.
  RemoteSlots(World& world, std::vector<int> processes, int replica);
  ~RemoteSlots();

  bool is_here(int slot) const { return process_of(slot) == world_.rank(); }
  /// Creates this process's end of the channel between a slot of this process and a slot of another process.
  /// `backward`: whether the arrays are sent in backward parts of the plan. `mine`: context of the slot in
  /// this process. The other arguments are those of Link. The receiving end starts to receive up to `most`
  /// arrays before receive() is called. Not thread-safe.
  std::unique_ptr<Channel> make_channel(int from, int to, bool backward, Context& mine, size_t bytes,
                                        Link::Keeping keeping, int most);
  /// Returns whether this process's end of a channel from slot `from` keeps copies in host memory. It then
  /// has `most` copies of `bytes` each (see make_channel()).
  bool copies(int from, const Context& mine, Link::Keeping keeping) const;

 private:
  struct Entry;
  class Sender;
  class Receiver;
  /// The receiving ends that expect arrays, in the order in which the arrays will be sent. Used by the thread
  /// of the receiving slot.
  struct Inbox {
    std::deque<Receiver*> expected;
    void post();
  };

  std::vector<Entry> make_entries(int process, int channel, Context& mine, int most);
  int process_of(int slot) const { return processes_[static_cast<size_t>(slot)]; }

  World& world_;
  const std::vector<int> processes_;
  const int replica_;
  std::map<int, Inbox> inboxes_;  // keys: channel numbers of the World
};

}  // namespace dtrain
