// Reads and writes the replicas' parameters and optimizer state, independent of their storage.
#include <algorithm>

#include "base/finite.h"
#include "engine/replicas.h"

namespace dtrain {

namespace {

/// Calls work(part, values) for consecutive parts of `range`, so that copies of state take only 4 MB of host
/// memory. `values`: buffer for the part, with unspecified content.
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

std::span<float> Replicas::copy_of(StateArray& array) {
  if (!array.copy.data() && array.size > 0)
    array.copy = replicas_[0]->executor(0).worker().context().allocate_host(static_cast<size_t>(array.size) *
                                                                            sizeof(float));
  return {array.copy.f32(), static_cast<size_t>(array.size)};
}

HostArrays Replicas::host_arrays(const std::function<std::span<float>(StateArray&)>& place) {
  HostArrays arrays{place(state_[0]), {}};
  for (size_t i = 1; i < state_.size(); ++i) arrays.slots.push_back(place(state_[i]));
  return arrays;
}

std::span<float> Replicas::host_view(std::string_view array) {
  return slots() == 1 ? syncs_[0]->host_view(array) : std::span<float>();
}

void Replicas::read_state(std::string_view array, Range range, float* to) {
  layout_.for_each_piece(range, [&](const ModelLayout::Piece& piece) {
    syncs_[static_cast<size_t>(piece.slot)]->read_state(array, piece.on_slot, to + (piece.at - range.begin));
  });
}

void Replicas::write_state(std::string_view array, Range range, const float* from) {
  layout_.for_each_piece(range, [&](const ModelLayout::Piece& piece) {
    syncs_[static_cast<size_t>(piece.slot)]->write_state(array, piece.on_slot,
                                                         from + (piece.at - range.begin));
  });
}

bool Replicas::read_gradient(Range range, float* to) {
  bool has_one = true;
  layout_.for_each_piece(range, [&](const ModelLayout::Piece& piece) {
    has_one = has_one && syncs_[static_cast<size_t>(piece.slot)]->read_gradient(
                             piece.on_slot, to + (piece.at - range.begin));
  });
  return has_one;
}

bool Replicas::has_finite_weights(Range range) {
  if (const std::span<float> values = host_view(kParameters); !values.empty())
    return all_finite(values.subspan(static_cast<size_t>(range.begin), static_cast<size_t>(range.size())));
  bool finite = true;
  each_block(range, [&](Range part, std::span<float> values) {
    read_state(kParameters, part, values.data());
    finite = finite && all_finite(values);
  });
  return finite;
}

std::string Replicas::first_weight_not_finite() {
  if (has_finite_weights({0, layout().size()})) return "";
  for (const ParameterSlice& slice : layout().slices())
    if (!has_finite_weights({slice.offset, slice.offset + slice.elements()})) return slice.path();
  return "";
}

HostArrays Replicas::download() {
  return host_arrays([this](StateArray& array) {
    if (const std::span<float> view = host_view(array.name); !view.empty()) return view;
    const std::span<float> copy = copy_of(array);
    read_state(array.name, {0, array.size}, copy.data());
    return copy;
  });
}

size_t Replicas::snapshot_bytes() const {
  return (static_cast<size_t>(layout().size()) +
          update().slots().size() * static_cast<size_t>(layout().trained())) *
         sizeof(float);
}

bool Replicas::has_room_for_snapshot() const {
  // Leave at least half of that size free for the rest of the machine.
  return host_memory().available / 3 * 2 >= snapshot_bytes();
}

std::optional<HostArrays> Replicas::snapshot() {
  if (host_view(kParameters).empty()) return download();
  if (!state_[0].copy.data() && !has_room_for_snapshot()) return std::nullopt;
  const HostArrays arrays = host_arrays([this](StateArray& array) { return copy_of(array); });
  run([&](Collective& member) {
    for (StateArray& array : state_) {
      const Range part = part_of(array.size, member.rank(), member.size());
      executor_of(member).worker().context().copy_to_host(array.copy.f32() + part.begin,
                                                          host_view(array.name).data() + part.begin,
                                                          static_cast<size_t>(part.size()) * sizeof(float));
    }
  });
  return arrays;
}

void Replicas::initialize() {
  for (const ParameterSlice& slice : layout().slices()) {
    const Range range{slice.offset, slice.offset + slice.elements()};
    std::vector<float> values(static_cast<size_t>(slice.elements()));
    initialize_parameter(config_.graph, slice, static_cast<uint64_t>(config_.seed), values.data());
    write_state(kParameters, range, values.data());
  }
  finish_writing();
}

void Replicas::set_slots_since(const std::map<std::string, int64_t>& since) {
  for (Update& update : updates_) update.set_slots_since(since);
}

void Replicas::begin_average() {
  if (!has_average()) return;
  each_block({0, layout().trained()}, [&](Range part, std::span<float> values) {
    read_state(kParameters, part, values.data());
    write_state(kAverage, part, values.data());
  });
}

void Replicas::swap_average() {
  if (!has_average()) return;
  const Range all{0, layout().trained()};
  if (const std::span<float> values = host_view(kParameters); !values.empty()) {
    std::swap_ranges(values.begin(), values.begin() + all.end, host_view(kAverage).begin());
  } else {
    each_block(all, [&](Range part, std::span<float> weights) {
      std::vector<float> average(weights.size());
      read_state(kParameters, part, weights.data());
      read_state(kAverage, part, average.data());
      write_state(kParameters, part, average.data());
      write_state(kAverage, part, weights.data());
    });
  }
  finish_writing();
}

void Replicas::finish_writing() {
  run([&](Collective& member) {
    Executor& executor = executor_of(member);
    sync_of(executor).finish_writing(executor.worker());
  });
}

GradientScale Replicas::gradient_scale() {
  GradientScale scale;
  Worker& first = replicas_[0]->executor(0).worker();
  first.context().copy_to_host(&scale, &first.state()->gradient, sizeof(scale));
  return scale;
}

void Replicas::set_gradient_scale(const GradientScale& scale) {
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors())
      executor->worker().context().copy_to_device(&executor->worker().state()->gradient, &scale,
                                                  sizeof(scale));
}

}  // namespace dtrain
