#include "nn/parameters.h"

#include <algorithm>
#include <cstdlib>

namespace dtrain {

namespace {
enum class Region { trained, statistics, frozen };

Region region_of(const GraphNode& node, const ParameterSpec& spec) {
  if (node.trains(spec)) return Region::trained;
  return node.trainable && spec.moving_average ? Region::statistics : Region::frozen;
}
}  // namespace

ParameterLayout::ParameterLayout(const Graph& graph, std::span<const int> slots, int slot) {
  const auto has_slices = [&](size_t node) {
    return graph.nodes[node].shared_with < 0 && (slots.empty() || slots[node] == slot);
  };
  size_t count = 0;
  for (size_t node = 0; node < graph.nodes.size(); ++node)
    if (has_slices(node)) count += graph.nodes[node].parameters.size();
  slices_.reserve(count);
  std::vector<Region> regions;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const GraphNode& n = graph.nodes[node];
    const bool shares = n.shared_with >= 0;
    owner_.push_back(shares ? owner_[static_cast<size_t>(n.shared_with)] : static_cast<int>(node));
    users_.push_back(0);
    ++users_[static_cast<size_t>(owner_.back())];
    first_slice_.push_back(static_cast<int>(slices_.size()));
    if (!has_slices(node)) continue;
    for (size_t i = 0; i < n.parameters.size(); ++i) {
      const ParameterSpec& spec = n.parameters[i];
      slices_.push_back({static_cast<int>(node), static_cast<int>(i), n.name, spec.name, spec.shape, 0,
                         spec.moving_average, spec.training, spec.penalty, spec.constraint, spec.orthogonal});
      regions.push_back(region_of(n, spec));
    }
  }
  const auto lay = [&](Region region) {
    for (size_t i = slices_.size(); i-- > 0;) {
      if (regions[i] != region) continue;
      slices_[i].offset = size_;
      size_ += (slices_[i].elements() + kAlignment - 1) / kAlignment * kAlignment;
    }
    return size_;
  };
  trained_ = lay(Region::trained);
  with_gradient_ = lay(Region::statistics);
  lay(Region::frozen);
}

std::vector<const ParameterSlice*> ParameterLayout::by_offset(Range range) const {
  std::vector<const ParameterSlice*> found;
  // In each region of the layout, the last slice has the smallest offset.
  for (size_t i = slices_.size(); i-- > 0;)
    if (const ParameterSlice& slice = slices_[i]; slice.offset >= range.begin && slice.offset < range.end)
      found.push_back(&slice);
  const auto is_before = [](const ParameterSlice* a, const ParameterSlice* b) {
    return a->offset < b->offset;
  };
  // Sorting is necessary only if the range contains parts of several regions.
  if (!std::is_sorted(found.begin(), found.end(), is_before))
    std::sort(found.begin(), found.end(), is_before);
  return found;
}

std::vector<Range> ParameterLayout::shares(int replicas, bool whole) const {
  std::vector<Range> shares;
  for (int replica = 0; replica < replicas; ++replica)
    shares.push_back(part_of(with_gradient_, replica, replicas, kAlignment));
  if (!whole) return shares;
  const std::vector<const ParameterSlice*> slices = by_offset({0, with_gradient_});
  const auto nearest = [&](int64_t at) {
    int64_t best = with_gradient_;
    for (const ParameterSlice* slice : slices)
      if (std::abs(slice->offset - at) < std::abs(best - at)) best = slice->offset;
    return best;
  };
  for (size_t i = 1; i < shares.size(); ++i) shares[i - 1].end = shares[i].begin = nearest(shares[i].begin);
  return shares;
}

const ParameterSlice& ParameterLayout::slice(int node, int index) const {
  const int owner = owner_[static_cast<size_t>(node)];
  const int place = first_slice_[static_cast<size_t>(owner)] + index;
  return slices_[static_cast<size_t>(place)];
}

ModelLayout::ModelLayout(const Graph& graph, std::span<const int> slots, int count) : whole_(graph) {
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const int shared = graph.nodes[node].shared_with;
    const size_t owner = shared >= 0 ? static_cast<size_t>(shared) : node;
    owner_slots_.push_back(shared >= 0 ? owner_slots_[owner] : slots.empty() ? 0 : slots[owner]);
  }
  if (count == 1) return;
  for (int slot = 0; slot < count; ++slot) by_slot_.emplace_back(graph, slots, slot);
  for (const ParameterSlice& slice : whole_.slices()) {
    const int slot = owner_slot(slice.node);
    const int64_t first = on(slot).slice(slice.node, slice.index).offset;
    pieces_.push_back({slot, {first, first + slice.elements()}, slice.offset});
  }
  std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.at < b.at; });
}

void ModelLayout::for_each_piece(Range range, const std::function<void(const Piece&)>& work) const {
  if (slots() == 1) return work({0, range, range.begin});
  for (const Piece& piece : pieces_) {
    const int64_t begin = std::max(range.begin, piece.at);
    const int64_t end = std::min(range.end, piece.at + piece.on_slot.size());
    if (begin >= end) continue;
    const int64_t first = piece.on_slot.begin + begin - piece.at;
    work({piece.slot, {first, first + end - begin}, begin});
  }
}

uint32_t stream_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

void initialize_parameter(const Graph& graph, const ParameterSlice& slice, uint64_t seed, float* values) {
  const ParameterSpec& spec =
      graph.nodes[static_cast<size_t>(slice.node)].parameters[static_cast<size_t>(slice.index)];
  spec.initializer->fill(values, slice.shape, Philox::of(seed, stream_of(slice.path())));
}

void initialize(const Graph& graph, const ParameterLayout& layout, uint64_t seed, float* values) {
  std::fill_n(values, layout.size(), 0.0f);
  for (const ParameterSlice& slice : layout.slices())
    initialize_parameter(graph, slice, seed, values + slice.offset);
}

}  // namespace dtrain
