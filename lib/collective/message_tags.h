// The tags of messages among processes.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

namespace dtrain {

/// Assigns the tags [first, end) to objects that exchange messages, so that no two objects have the same tag
/// at the same time. All processes must take and return tags in the same order; they then have the same tags
/// for the same objects. Safe on any thread.
class MessageTags {
 public:
  MessageTags(int first, int end) : first_(first), used_(static_cast<size_t>(end - first)) {}

  /// Returns the next unused tag. The search starts after the tag that was taken last. At the end of the
  /// range, it continues with the first tag of the range. Returns nullopt if all tags are in use.
  std::optional<int> take() {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < used_.size(); ++i) {
      const size_t place = next_;
      next_ = (next_ + 1) % used_.size();
      if (used_[place]) continue;
      used_[place] = true;
      return first_ + static_cast<int>(place);
    }
    return std::nullopt;
  }
  void give_back(int tag) {
    const std::lock_guard lock(mutex_);
    used_[static_cast<size_t>(tag - first_)] = false;
  }

 private:
  const int first_;
  std::mutex mutex_;
  std::vector<bool> used_;  // indexed by tag - first_
  size_t next_ = 0;
};

}  // namespace dtrain
