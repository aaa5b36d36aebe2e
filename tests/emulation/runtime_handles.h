// Interface between the runtime's streams and graphs.
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

/// The objects of the runtime's handles of one type.
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

/// Clears the objects. Returns a line with their number, or "" if there were none.
template <class All>
std::string stop_all(All& all, const char* what) {
  std::string left;
  if (!all.empty()) left = fmt::format("{} {} never destroyed\n", all.size(), what);
  all.clear();
  return left;
}

/// Returns the stream of a handle; null if the handle is invalid.
CUstream_st* stream_of(cudaStream_t handle);
/// Returns the dependencies of new work on this stream: the null stream and blocking streams do not overlap.
std::vector<WorkPtr> tails(CUstream_st* stream);
/// Invalidates a capture; returns `status`.
cudaError_t spoil(const std::shared_ptr<Capture>& capture, cudaError_t status);

cudaGraph_t keep_graph(std::vector<CapturedNode> nodes);
/// Clears all graphs. Returns a line per type with their number, or "" if there were none.
std::string stop_graphs();

}  // namespace dtrain::emulation
