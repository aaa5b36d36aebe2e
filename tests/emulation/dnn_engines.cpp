// The engines that cuDNN's heuristics propose for convolutions and attention. Some of the proposed engines do
// not work, and some are not deterministic.
#include <algorithm>

#include "emulation/dnn_descriptors.h"
#include "emulation/memory.h"
#include "emulation/queue.h"

namespace dtrain::emulation::dnn {

namespace {

/// Finds engines for attention. There are engines only for 16-bit types and aligned rows. As on GPUs before
/// compute capability 9.0, backward passes have engines only for up to 128 columns. As in cuDNN, the engines
/// of backward passes are not deterministic, although they lack the note
/// CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC.
void find_attention_engines(Descriptor& d) {
  bool backward = false;
  for (const GraphNode& node : d.nodes) backward = backward || node.kind == GraphNode::Kind::transposition;
  for (const GraphTensor& array : arrays_of(d.nodes)) {
    if (array.is_by_value) continue;
    const bool is_row = array.type != Number::float32 && array.extents[1] > 1;
    const int64_t columns = array.strides[3] == 1 ? array.extents[3] : array.extents[2];
    if (!is_row) continue;
    if (columns % 8 != 0 || array.strides[1] % 8 != 0 || (backward && columns > 128)) return;
  }
  if (value<cudnnBackendHeurMode_t>(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE) ==
      CUDNN_HEUR_MODE_FALLBACK)
    return;
  d.engines = {{2, 0, false, {}},
               {backward ? 6 : 1, backward ? 1 << 17 : 256, true, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}}};
}

}  // namespace

/// Finds engines for an operation, with the limits of cuDNN. There are no engines for weight gradients whose
/// dilations differ between the axes. Float32 weight gradients of 16-bit images have engines only for square
/// filters. There is no engine if there are more images than the maximum number of blocks in a grid. If a
/// tensor has more elements than the limit of the emulated machine, only engine 0 remains.
void find_engines(Descriptor& d) {
  const Descriptor& graph =
      part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  d.operation = graph.operation;
  d.nodes = graph.nodes;
  d.device = graph.device;
  if (!d.nodes.empty()) return find_attention_engines(d);
  const Operation& o = d.operation;
  if (o.direction == Direction::filter && o.convolution.dilations[1] != o.convolution.dilations[2])
    throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  if (o.w.type != o.x.type && o.w.dimensions[3] != o.w.dimensions[4])
    throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  if (o.x.dimensions[0] > 65535) throw Refused{CUDNN_STATUS_NOT_SUPPORTED};
  if (std::max(o.x.elements(), o.y.elements()) > machine().dnn_elements) {
    d.engines = {{0, 0, true, {}}};
    return;
  }
  const auto mode = value<cudnnBackendHeurMode_t>(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE);
  if (mode == CUDNN_HEUR_MODE_FALLBACK) {
    d.engines = {{1, 0, true, {}}};
    return;
  }
  const bool exact = o.x.type == Number::float32;
  Engine fast{2, 1 << 16, true, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}};
  const Engine coarse{
      3, 0, true, {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6}, 0x1p-11};
  if (o.direction != Direction::forward) fast.notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  d.engines = {{4, 0, false, {}}, {5, int64_t{1} << 40, true, {}}};
  if (exact) d.engines.push_back(coarse);
  d.engines.push_back(fast);
  if (!exact) d.engines.push_back({6, 1 << 15, true, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}});
}

}  // namespace dtrain::emulation::dnn
