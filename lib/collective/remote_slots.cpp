#include "collective/remote_slots.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

namespace dtrain {

namespace {

/// Allocates host memory for one array of a slot. If the slot is on a CPU, this memory is counted as memory
/// of the context.
Buffer room_for_copy(Context& context, size_t bytes) {
  return context.on_gpu() ? context.allocate_host(bytes) : context.allocate(bytes);
}

}  // namespace

/// A message and the memory of its array.
struct RemoteSlots::Entry {
  std::unique_ptr<Event> copied;  // recorded after a GPU's last copy to or from `copy`; null on CPUs
  Buffer copy;                    // in host memory; allocated before the first array is copied
  std::unique_ptr<ProcessMessage> message;
};

/// Sends the array directly, or a copy of the array. A copy is needed if the array is on a GPU, or if it may
/// change before it has been received. The copy from a GPU is only enqueued, and the message is sent once the
/// copy is complete. The host thread therefore does not wait for the GPU, and can enqueue the next task in
/// the meantime.
class RemoteSlots::Sender final : public Channel {
 public:
  Sender(std::vector<Entry> entries, Context& from, size_t bytes, bool copies)
      : from_(from), bytes_(bytes), copies_(copies), entries_(std::move(entries)) {}

  uint64_t send(const void* src, size_t bytes) override {
    const uint64_t number = sent_ + 1;
    wait_finished(number > entries_.size() ? number - entries_.size() : 0);
    Entry& mine = entry(number);
    if (copies_) {
      if (!mine.copy.data()) mine.copy = room_for_copy(from_, bytes_);
      from_.enqueue_copy(mine.copy.data(), src, bytes);
      src = mine.copy.data();
    }
    if (mine.copied) mine.copied->record();
    mine.message->send({static_cast<const std::byte*>(src), bytes}, mine.copied.get());
    return sent_ = number;
  }
  void receive(void*, size_t) override { throw std::logic_error("this end of the channel only sends"); }
  void wait_received(uint64_t number) override {
    if (!copies_) wait_finished(number);
  }
  void abort() noexcept override {}

 private:
  Entry& entry(uint64_t number) { return entries_[number % entries_.size()]; }
  /// Waits until the messages up to `number` have been sent and their memory may be reused. The receiver must
  /// already have started to receive these messages.
  void wait_finished(uint64_t number) {
    while (finished_ < number) entry(++finished_).message->wait();
  }

  Context& from_;
  const size_t bytes_;
  const bool copies_;
  std::vector<Entry> entries_;
  uint64_t sent_ = 0, finished_ = 0;
};

/// Receives arrays into host memory. If the receiving slot is on a GPU, the copy to the GPU is only enqueued.
/// The host memory is used for another array once this copy is complete.
class RemoteSlots::Receiver final : public Channel {
 public:
  Receiver(std::vector<Entry> entries, Inbox& inbox, Context& to, size_t bytes)
      : inbox_(inbox), to_(to), bytes_(bytes), entries_(std::move(entries)) {}

  uint64_t send(const void*, size_t) override {
    throw std::logic_error("this end of the channel only receives");
  }
  void expect() override {
    inbox_.expected.push_back(this);
    inbox_.post();
  }
  void receive(void* dst, size_t bytes) override {
    if (posted_ == taken_) throw std::logic_error("received an array that was not expected");
    Entry& its = entry(taken_ + 1);
    its.message->wait();
    if (its.copied) {
      to_.enqueue_copy(dst, its.copy.data(), std::min(bytes, bytes_));
      its.copied->record();
    } else {
      to_.copy_to_device(dst, its.copy.data(), std::min(bytes, bytes_));
    }
    ++taken_;
    inbox_.post();
  }
  void wait_received(uint64_t) override {}
  void abort() noexcept override {}

  bool has_room() const { return posted_ - taken_ < entries_.size(); }
  /// Starts to receive the next expected array.
  void post() {
    Entry& next = entry(++posted_);
    if (!next.copy.data()) next.copy = room_for_copy(to_, bytes_);
    next.message->receive({static_cast<std::byte*>(next.copy.data()), bytes_}, next.copied.get());
  }

 private:
  Entry& entry(uint64_t number) { return entries_[number % entries_.size()]; }

  Inbox& inbox_;
  Context& to_;
  const size_t bytes_;
  std::vector<Entry> entries_;
  uint64_t posted_ = 0, taken_ = 0;
};

/// Starts to receive the next expected arrays, until a receiving end has no free memory for another array.
void RemoteSlots::Inbox::post() {
  for (; !expected.empty() && expected.front()->has_room(); expected.pop_front()) expected.front()->post();
}

RemoteSlots::RemoteSlots(World& world, std::vector<int> processes, int replica)
    : world_(world), processes_(std::move(processes)), replica_(replica) {}

RemoteSlots::~RemoteSlots() = default;

std::vector<RemoteSlots::Entry> RemoteSlots::make_entries(int process, int channel, Context& mine, int most) {
  std::vector<Entry> entries(static_cast<size_t>(most));
  for (Entry& entry : entries) {
    if (mine.on_gpu()) entry.copied = mine.make_event();
    entry.message = world_.make_message(process, channel);
  }
  return entries;
}

bool RemoteSlots::copies(int from, const Context& mine, Link::Keeping keeping) const {
  return !is_here(from) || keeping == Link::Keeping::copied || mine.on_gpu();
}

std::unique_ptr<Channel> RemoteSlots::make_channel(int from, int to, bool backward, Context& mine,
                                                   size_t bytes, Link::Keeping keeping, int most) {
  const int slots = static_cast<int>(processes_.size());
  const int number = ((replica_ * slots + from) * slots + to) * 2 + (backward ? 1 : 0);
  std::vector<Entry> entries = make_entries(process_of(is_here(from) ? to : from), number, mine, most);
  if (is_here(from))
    return std::make_unique<Sender>(std::move(entries), mine, bytes, copies(from, mine, keeping));
  return std::make_unique<Receiver>(std::move(entries), inboxes_[number], mine, bytes);
}

}  // namespace dtrain
