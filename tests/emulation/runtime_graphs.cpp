// Emulates the CUDA runtime's graphs.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "emulation/memory.h"
#include "emulation/runtime_handles.h"

namespace dtrain::emulation {

namespace {
Handles<CUgraph_st> graphs;
Handles<CUgraphExec_st> executables;
int blocked_device = -1;         // device whose graph launches block
int64_t aborts_before = 0;       // number of aborted communicators when the device was blocked
std::vector<CapturedNode> lost;  // nodes of destroyed graphs whose resources a broken device does not release
}  // namespace

void block_graph_launches(int device) {
  const auto lock = lock_machine();
  blocked_device = device;
  aborts_before = nccl_aborts();
}

void drop_lost_graphs() {
  lost.clear();
}

cudaGraph_t keep_graph(std::vector<CapturedNode> nodes) {
  auto made = std::make_unique<CUgraph_st>();
  made->nodes = std::move(nodes);
  return graphs.insert(std::move(made)).first->get();
}

std::string stop_graphs() {
  return stop_all(graphs, "graphs") + stop_all(executables, "executable graphs");
}

}  // namespace dtrain::emulation

using namespace dtrain::emulation;

extern "C" {

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const auto lock = lock_machine();
  const auto found = find(graphs, graph);
  if (found == graphs.end()) return answer(cudaErrorInvalidValue);
  graphs.erase(found);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags) {
  const auto lock = lock_machine();
  if (!exists(graphs, graph)) return answer(cudaErrorInvalidValue);
  if (device_status() != cudaSuccess) return answer(device_status());
  wait_for_all_devices();
  auto executable = std::make_unique<CUgraphExec_st>();
  executable->nodes = graph->nodes;
  executable->device = current_device();
  executable->by_node_priority = (flags & cudaGraphInstantiateFlagUseNodePriority) != 0;
  if (!take_unasked(current_device(), executable->bytes())) return answer(cudaErrorMemoryAllocation);
  *made = executables.insert(std::move(executable)).first->get();
  return answer(device_status());
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const auto lock = lock_machine();
  const auto found = find(executables, executable);
  if (found == executables.end()) return answer(cudaErrorInvalidValue);
  wait_for_all_devices();
  give_back_unasked(executable->device, executable->bytes());
  const cudaError_t status = device_status(executable->device);
  if (status != cudaSuccess)
    std::move(executable->nodes.begin(), executable->nodes.end(), std::back_inserter(lost));
  executables.erase(found);  // launched work continues
  return answer(status);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  const auto lock = lock_machine();
  CUstream_st* stream = stream_of(handle);
  if (!stream || !exists(executables, executable)) return answer(cudaErrorInvalidValue);
  if (stream->capture) return answer(spoil(stream->capture, cudaErrorStreamCaptureUnsupported));
  wait_for_all_devices();
  executable->upload = stream->tail = queue_work(stream->device, {}, tails(stream));
  return answer(device_status(stream->device));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const auto lock = lock_machine();
  if (!exists(graphs, graph) || nodes) return answer(cudaErrorInvalidValue);
  *count = graph->nodes.size();
  return cudaSuccess;
}

/// Launches of one executable graph run one after another. A graph that was not uploaded is uploaded now,
/// which may allocate and wait.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  auto lock = lock_machine();
  CUstream_st* stream = stream_of(handle);
  if (!stream || !exists(executables, executable)) return answer(cudaErrorInvalidResourceHandle);
  const int device = stream->device;
  if (device_status(device) != cudaSuccess) return answer(device_status(device));
  if (stream->capture) return answer(spoil(stream->capture, cudaErrorStreamCaptureUnsupported));
  ++counts().launches;
  for (const CapturedNode& node : executable->nodes) {
    ++counts().nodes;
    if (executable->by_node_priority && node.priority < 0) ++counts().urgent;
  }
  const bool is_uploaded = executable->launched || (executable->upload && executable->upload->done);
  if (!is_uploaded) wait_for_all_devices();
  executable->launched = true;
  std::vector<WorkPtr> before = tails(stream);
  before.push_back(executable->last);
  const bool is_blocked = device == blocked_device;
  const WorkPtr begin =
      queue_work(device, {}, before, [=] { return !is_blocked || nccl_aborts() > aborts_before; });
  if (is_blocked) run_until_done(begin, device, lock);
  std::vector<WorkPtr> all = {begin};
  for (const CapturedNode& node : executable->nodes) {
    std::vector<WorkPtr> after = {begin};
    for (const size_t i : node.after) after.push_back(all[i + 1]);
    all.push_back(queue_work(device, node.run, after, node.ready, node.queued));
  }
  executable->last = stream->tail = queue_work(device, {}, all);
  run_some();
  return cudaSuccess;
}

}  // extern "C"
