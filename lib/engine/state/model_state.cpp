#include "engine/state/model_state.h"

#include <algorithm>
#include <utility>

#include "base/finite.h"

namespace dtrain {

namespace {

/// Calls work(part, values) for consecutive parts of `range`. Each part has at most 4 MB, so that copies of
/// the state take little host memory. `values`: a buffer for the part, with unspecified content.
template <class Work>
void each_block(Range range, const Work& work) {
  constexpr int64_t kBlock = int64_t{1} << 20;
  std::vector<float> values(static_cast<size_t>(std::min(kBlock, range.size())));
  for (int64_t begin = range.begin; begin < range.end; begin += kBlock) {
    const Range part{begin, std::min(begin + kBlock, range.end)};
    work(part, std::span(values).first(static_cast<size_t>(part.size())));
  }
}

}  // namespace

ModelState::ModelState(const ModelLayout& layout, SlotThreads& threads, const std::deque<Update>& updates,
                       std::span<const std::unique_ptr<SlotState>> slots, const RunPlan& plan, RunOnSlots run)
    : layout_(layout),
      threads_(threads),
      updates_(updates),
      slots_(slots),
      plan_(plan),
      world_(plan.world),
      run_(std::move(run)) {
  arrays_.push_back({std::string(kParameters), this->layout().size(), {}, {}});
}

void ModelState::allocate_parameters() {
  for (int rank = 0; rank < threads_.replicas(); ++rank)
    for (int slot = threads_.first_slot(); slot < threads_.end_slot(); ++slot)
      state(slot).allocate_parameters(threads_.worker(rank, slot));
}

void ModelState::allocate_slots() {
  run_([&](int rank, int slot) { state(slot).allocate_slots(threads_.worker(rank, slot)); });
  for (const SlotLayout& on_slot : update().slots()) {
    SlotLayout whole(layout(), on_slot.slot());
    arrays_.push_back({whole.name(), whole.size(), whole, {}});
  }
}

std::span<float> ModelState::copy_of(Array& array) {
  if (!array.copy.data() && array.size > 0)
    array.copy =
        threads_.worker(0, threads_.first_slot()).context().allocate_host(bytes_of_floats(array.size));
  return {array.copy.f32(), static_cast<size_t>(array.size)};
}

HostArrays ModelState::host_arrays(const std::function<std::span<float>(Array&)>& place) {
  HostArrays arrays{place(arrays_[0]), {}};
  for (size_t i = 1; i < arrays_.size(); ++i) arrays.slots.push_back(place(arrays_[i]));
  return arrays;
}

std::span<float> ModelState::host_view(std::string_view array) const {
  return layout_.slots() == 1 ? store(0).host_view(array) : std::span<float>();
}

/// Consecutive pieces that belong to the same process are merged into one part of the result. The pieces may
/// be in ascending or descending order. The part includes the padding between the pieces.
PartsOfProcesses ModelState::parts_by_slot(std::string_view array, Range range) const {
  std::vector<size_t> processes;  // indexed by slot
  for (int process = 0; process < world_.size(); ++process)
    processes.insert(processes.end(), static_cast<size_t>(plan_.slots_of(process).size()),
                     static_cast<size_t>(process));
  PartsOfProcesses parts(static_cast<size_t>(world_.size()));
  const std::vector<Range>* last = nullptr;
  each_piece(array, range, [&](const ModelLayout::Piece& piece) {
    std::vector<Range>& its = parts[processes[static_cast<size_t>(piece.slot)]];
    const int64_t begin = piece.at - range.begin, end = begin + piece.on_slot.size();
    if (last != &its) its.push_back({begin, end});
    its.back() = {std::min(its.back().begin, begin), std::max(its.back().end, end)};
    last = &its;
  });
  return parts;
}

/// If no replica is split across processes, only store(0) can have several parts, because a sharded model has
/// one slot.
PartsOfProcesses ModelState::parts_in(std::string_view array, Range range) const {
  if (plan_.has_divided_replicas()) return parts_by_slot(array, range);
  PartsOfProcesses parts = store(0).parts_of(array);
  for (std::vector<Range>& its : parts)
    for (Range& part : its) {
      const Range common = overlap(part, range);
      part = common.size() == 0 ? Range{} : Range{common.begin - range.begin, common.end - range.begin};
    }
  return parts;
}

/// It is sufficient to check the parts of the gradient, because every level of sharding divides the gradient.
bool ModelState::is_spread() const {
  return plan_.has_divided_replicas() || !store(0).parts_of(kGradient).empty();
}

bool ModelState::has_all_weights() const {
  if (plan_.has_divided_replicas()) return false;
  return store(0).parts_of(kParameters).empty() && !(has_average() && is_spread());
}

void ModelState::complete(std::string_view array, Range range, float* values) const {
  const PartsOfProcesses parts = parts_in(array, range);
  if (!parts.empty()) world_.all_gather_parts(parts, {values, static_cast<size_t>(range.size())});
}

void ModelState::each_piece(std::string_view array, Range range,
                            const std::function<void(const ModelLayout::Piece&)>& work) const {
  const auto found =
      std::find_if(arrays_.begin(), arrays_.end(), [&](const Array& one) { return one.name == array; });
  if (found == arrays_.end() || !found->layout || found->layout->is_like_weights())
    return layout_.for_each_piece(range, work);
  if (layout_.slots() == 1) return work({0, range, range.begin});
  const auto index = static_cast<size_t>(found - arrays_.begin()) - 1;  // index among the optimizer's slots
  for (const ParameterSlice& slice : layout().slices()) {
    if (slice.offset >= layout().trained()) continue;
    const Range whole = found->layout->of(slice), part = overlap(range, whole);
    if (part.size() == 0) continue;
    const int slot = layout_.owner_slot(slice.node);
    const SlotLayout& on_slot = updates_[static_cast<size_t>(slot)].slots()[index];
    const int64_t first =
        on_slot.of(layout_.on(slot).slice(slice.node, slice.index)).begin + (part.begin - whole.begin);
    work({slot, {first, first + part.size()}, part.begin});
  }
}

void ModelState::read_own(std::string_view array, Range range, float* to) const {
  each_piece(array, range, [&](const ModelLayout::Piece& piece) {
    if (is_here(piece.slot)) store(piece.slot).read(array, piece.on_slot, to + (piece.at - range.begin));
  });
}

void ModelState::read(std::string_view array, Range range, float* to) const {
  read_own(array, range, to);
  complete(array, range, to);
}

void ModelState::write(std::string_view array, Range range, const float* from) {
  each_piece(array, range, [&](const ModelLayout::Piece& piece) {
    if (is_here(piece.slot)) store(piece.slot).write(array, piece.on_slot, from + (piece.at - range.begin));
  });
}

void ModelState::broadcast() {
  if (plan_.world_of_replicas().size() == 1) return;
  for (const Array& array : arrays_) {
    if (!store(0).parts_of(array.name).empty()) continue;
    each_block({0, array.size}, [&](Range part, std::span<float> values) {
      read(array.name, part, values.data());
      world_.broadcast(std::as_writable_bytes(values));
      write(array.name, part, values.data());
    });
  }
  finish_writing();
}

bool ModelState::read_gradient(Range range, float* to) const {
  bool has_one = state(threads_.first_slot()).read_gradient({}, to);
  layout_.for_each_piece(range, [&](const ModelLayout::Piece& piece) {
    if (is_here(piece.slot))
      has_one = has_one && state(piece.slot).read_gradient(piece.on_slot, to + (piece.at - range.begin));
  });
  if (has_one) complete(kGradient, range, to);
  return has_one;
}

bool ModelState::has_finite_weights(Range range) const {
  if (const std::span<float> values = host_view(kParameters); !values.empty())
    return all_finite(values.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size())));
  bool finite = true;
  each_block(range, [&](Range part, std::span<float> values) {
    read(kParameters, part, values.data());
    finite = finite && all_finite(values);
  });
  return finite;
}

std::string ModelState::first_weight_not_finite() const {
  if (has_finite_weights({0, layout().size()})) return "";
  for (const ParameterSlice& slice : layout().slices())
    if (!has_finite_weights({slice.offset, slice.offset + slice.elements()})) return slice.path();
  return "";
}

HostArrays ModelState::download() {
  return host_arrays([this](Array& array) {
    if (const std::span<float> view = host_view(array.name); !view.empty()) return view;
    if (is_spread()) return collect(array);
    const std::span<float> copy = copy_of(array);
    read(array.name, {0, array.size}, copy.data());
    return copy;
  });
}

/// Process 0 needs memory for the whole array. Other processes need memory for one block only.
std::span<float> ModelState::collect(Array& array) {
  const bool sends = world_.rank() > 0;
  const std::span<float> all = sends ? std::span<float>() : copy_of(array);
  each_block({0, array.size}, [&](Range block, std::span<float> values) {
    float* const to = sends ? values.data() : all.data() + block.begin;
    const PartsOfProcesses parts = parts_in(array.name, block);
    if (sends && parts.empty()) return;
    read_own(array.name, block, to);
    if (!parts.empty()) world_.gather_parts(parts, {to, values.size()});
  });
  return all;
}

size_t ModelState::snapshot_bytes() const {
  int64_t floats = layout().size();
  for (const SlotLayout& slot : update().slots()) floats += SlotLayout(layout(), slot.slot()).size();
  return bytes_of_floats(floats);
}

bool ModelState::has_room_for_snapshot() const {
  // Leaves at least half of the snapshot's size free for the rest of the machine.
  return host_memory().available / 3 * 2 >= snapshot_bytes();
}

std::optional<HostArrays> ModelState::snapshot() {
  if (host_view(kParameters).empty()) return download();
  if (!arrays_[0].copy.data() && !has_room_for_snapshot()) return std::nullopt;
  const HostArrays arrays = host_arrays([this](Array& array) { return copy_of(array); });
  run_([&](int rank, int slot) {
    for (Array& array : arrays_) {
      const Range part = part_of(array.size, rank * threads_.slots() + slot, threads_.size());
      threads_.worker(rank, slot)
          .context()
          .copy_to_host(array.copy.f32() + part.begin, host_view(array.name).data() + part.begin,
                        bytes_of_floats(part.size()));
    }
  });
  return arrays;
}

bool ModelState::is_copied_for_saving() const {
  return host_view(kParameters).empty() && (world_.rank() == 0 || !is_spread());
}

void ModelState::initialize(const Graph& graph, uint64_t seed) {
  for (const ParameterSlice& slice : layout().slices()) {
    const Range range{slice.offset, slice.offset + slice.elements()};
    std::vector<float> values(static_cast<size_t>(slice.elements()));
    initialize_parameter(graph, slice, seed, values.data());
    write(kParameters, range, values.data());
  }
  finish_writing();
}

void ModelState::begin_average() {
  if (!has_average()) return;
  each_block({0, layout().trained()}, [&](Range part, std::span<float> values) {
    read(kParameters, part, values.data());
    write(kAverage, part, values.data());
  });
}

void ModelState::swap_average() {
  if (!has_average()) return;
  const Range all{0, layout().trained()};
  if (const std::span<float> values = host_view(kParameters); !values.empty()) {
    std::swap_ranges(values.begin(), values.begin() + all.end, host_view(kAverage).begin());
  } else {
    each_block(all, [&](Range part, std::span<float> weights) {
      std::vector<float> average(weights.size());
      read(kParameters, part, weights.data());
      read(kAverage, part, average.data());
      write(kParameters, part, average.data());
      write(kAverage, part, weights.data());
    });
  }
  finish_writing();
}

void ModelState::finish_writing() {
  run_([&](int rank, int slot) { store(slot).finish_writing(threads_.worker(rank, slot)); });
}

GradientScale ModelState::gradient_scale() const {
  GradientScale scale;
  Worker& first = threads_.worker(0, threads_.first_slot());
  first.context().copy_to_host(&scale, &first.state()->gradient, sizeof(scale));
  return scale;
}

void ModelState::set_gradient_scale(const GradientScale& scale) {
  for (int rank = 0; rank < threads_.replicas(); ++rank)
    for (int slot = threads_.first_slot(); slot < threads_.end_slot(); ++slot) {
      Worker& worker = threads_.worker(rank, slot);
      worker.context().copy_to_device(&worker.state()->gradient, &scale, sizeof(scale));
    }
}

}  // namespace dtrain
