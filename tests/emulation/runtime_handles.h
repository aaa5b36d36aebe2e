// The interface between the files that emulate streams and graphs.
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

/// All objects of one type that have handles.
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
/// Returns the work on which new work of this stream depends. This is the last work of the stream. The null
/// stream and the blocking streams wait for each other, so the work also depends on the last work of these
/// streams.
std::vector<WorkPtr> tails(CUstream_st* stream);
/// Invalidates a capture; returns `status`.
cudaError_t spoil(const std::shared_ptr<Capture>& capture, cudaError_t status);

cudaGraph_t keep_graph(std::vector<CapturedNode> nodes);
/// Clears all graphs. Returns a line per type with their number, or "" if there were none.
std::string stop_graphs();

}  // namespace dtrain::emulation
