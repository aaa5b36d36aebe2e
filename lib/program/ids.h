// Ids of the parts of a program. Each kind of part has its own id type, so that ids cannot be mixed up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dtrain {

enum class NodeId : int32_t { none = -1 };     // a node of the graph, and its prepared layer
enum class ValueId : int32_t { none = -1 };    // an array that instructions read and write
enum class BufferId : int32_t { none = -1 };   // the memory of one value or of several
enum class CallId : int32_t { none = -1 };     // the arguments of a layer's call
enum class LinkId : int32_t { none = -1 };     // a connection from one slot to another
enum class ReorderId : int32_t { none = -1 };  // a conversion from one layout to another

/// A vector that is indexed by an id.
template <class Id, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(size_t size) : items_(size) {}
  IdVector(size_t size, const T& value) : items_(size, value) {}

  T& operator[](Id id) { return items_[static_cast<size_t>(id)]; }
  const T& operator[](Id id) const { return items_[static_cast<size_t>(id)]; }
  /// Appends an element and returns its id.
  Id add(T item) {
    items_.push_back(std::move(item));
    return static_cast<Id>(items_.size() - 1);
  }
  void reserve(size_t size) { items_.reserve(size); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace dtrain
