// What the runtime's streams and graphs know of each other.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "emulation/queue.h"

namespace dtrain::emulation {

/// Objects that handles point to.
template <class T>
using Handles = std::set<std::unique_ptr<T>, std::less<>>;

template <class T>
auto find(Handles<T>& all, const T* wanted) {
  return std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == wanted; });
}
template <class T>
bool exists(Handles<T>& all, const T* wanted) {
  return find(all, wanted) != all.end();
}

/// Clears them; says how many there were still, in a line, or "" for none.
template <class All>
std::string stop_all(All& all, const char* what) {
  std::string left;
  if (!all.empty()) left = fmt::format("{} {} never destroyed\n", all.size(), what);
  all.clear();
  return left;
}

/// The stream that a handle names; null where it names none.
CUstream_st* stream_of(cudaStream_t handle);
/// What new work on this stream comes after: the null stream and those that block do not overlap.
std::vector<WorkPtr> tails(CUstream_st* stream);
/// Ends a capture's use; gives `status`.
cudaError_t spoil(const std::shared_ptr<Capture>& capture, cudaError_t status);

cudaGraph_t keep_graph(std::vector<CapturedNode> nodes);
/// As stop_all().
std::string stop_graphs();

}  // namespace dtrain::emulation
