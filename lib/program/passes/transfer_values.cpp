#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "program/passes/definitions.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

using Kind = ProgramValue::Kind;

/// Inserts the sends and receives of values, gradients and parameters that one slot computes or owns and
/// another slot reads. Also makes the readers use the received copies.
class Transfers {
 public:
  explicit Transfers(CompileState& step)
      : step_(step), program_(step.program), defined_(find_definitions(step.program)) {}

  void insert() {
    for (at_ = 0; at_ < program_.instructions.size(); ++at_) {
      const Instruction& instruction = program_.instructions[at_];
      find_operands(program_, program_.instructions[at_], places_);
      for (ValueId* place : places_.reads)
        if (program_.values[*place].slot != instruction.slot) *place = receive(*place);
      if (step_.options.gathers_parameters) continue;
      if (const auto* forward = std::get_if<LayerForward>(&instruction.work))
        receive_parameters(forward->call);
      if (const auto* backward = std::get_if<LayerBackward>(&instruction.work))
        receive_parameters(backward->call);
    }
    insert_sends();
    insertions_.apply(program_.instructions);
  }

 private:
  /// A send that is inserted after the instruction at position `defined`. Several sends at the same position
  /// are ordered by `rank`, and then by `value`.
  struct Sending {
    int64_t defined = Insertions::kFront;
    int rank = 0;
    ValueId value = ValueId::none;
    Instruction instruction;
  };
  // Ranks of the sends before the first instruction: row weights are sent first (rank 0), then parameters,
  // then the model's inputs.
  static constexpr int kParameterRank = 1, kInputRank = 2;

  LinkId add_link(int from, int to, size_t bytes, Link::Keeping keeping) {
    // The link must store the arrays of several microbatches, because one slot may still have its maximum
    // number of microbatches in flight when the other slot has already finished these microbatches.
    const auto& in_flight = step_.options.in_flight;
    const int most = in_flight.empty()
                         ? 1
                         : std::max(in_flight[static_cast<size_t>(from)], in_flight[static_cast<size_t>(to)]);
    return program_.links.add({from, to, bytes, keeping, most});
  }

  void insert_receive(const std::string& name, LinkId link, ValueId value) {
    const Instruction& reader = program_.instructions[at_];
    insertions_.before(at_, {reader.slot, reader.phase, reader.node, name + " receive",
                             ReceiveValue{.link = link, .value = value}});
  }

  /// Returns the copy of a value on the slot of the instruction at position at_. The first call for a value
  /// and a slot inserts the receive before this instruction.
  ValueId receive(ValueId value) {
    const int to = program_.instructions[at_].slot;
    const auto [entry, is_new] = received_.try_emplace({value, to}, ValueId::none);
    if (!is_new) return entry->second;
    ProgramValue copy = program_.values[value];
    const std::string name = copy.name;
    const LinkId link = send(value, to);
    copy.slot = to;
    if (copy.of.node >= 0) copy.bytes = step_.bytes_on(copy.of, to);
    entry->second = program_.values.add(std::move(copy));
    insert_receive(name, link, entry->second);
    return entry->second;
  }

  /// Adds a send of a value to slot `to`, and returns its link. A value that is sent in the forward pass
  /// remains unchanged until the end of the microbatch, so that the other slot can read it at any time. A
  /// gradient is copied, because the other slot may read it much later (for example, with a skip connection).
  /// By then, the sending slot may have finished this microbatch and started another one.
  LinkId send(ValueId id, int to) {
    const ProgramValue& value = program_.values[id];
    const int64_t defined = defined_[id];
    const Instruction* maker = defined < 0 ? nullptr : &program_.instructions[static_cast<size_t>(defined)];
    const Phase phase = maker ? maker->phase : Phase::forward;
    const LinkId link = add_link(value.slot, to, value.bytes,
                                 phase == Phase::backward ? Link::Keeping::copied : Link::Keeping::lent);
    // The gradients of parameters are sent after the gradients of values of the same call.
    int rank = value.kind == Kind::parameter_gradient ? 1 : 0;
    if (!maker && value.of.node >= 0) rank = kInputRank;
    sendings_.push_back({defined,
                         rank,
                         id,
                         {value.slot, phase, maker ? maker->node : NodeId::none, value.name + " send",
                          SendValue{.link = link, .value = id}}});
    return link;
  }

  /// Receives the parameters of a call if another slot owns them, because layers on several slots share these
  /// parameters.
  void receive_parameters(CallId id) {
    const auto node = static_cast<int>(program_.calls[id].node);
    const int from = step_.layout.owner_slot(node), to = program_.calls[id].slot;
    if (from == to) return;
    for (size_t k = 0; k < program_.calls[id].parameters.size(); ++k)
      program_.calls[id].parameters[k] = receive_parameter(step_.slice_of(node, k), from, to);
  }

  ParameterPlace receive_parameter(const ParameterSlice& slice, int from, int to) {
    const auto [entry, is_new] = parameters_.try_emplace({&slice, to});
    ParameterPlace& place = entry->second;
    if (!is_new) return place;
    const std::string name = slice.path();
    const auto elements = static_cast<size_t>(slice.elements());
    const LinkId link = add_link(from, to, elements * sizeof(float), Link::Keeping::lent);
    sendings_.push_back({Insertions::kFront,
                         kParameterRank,
                         ValueId::none,
                         {from, Phase::forward, NodeId::none, name + " send",
                          SendParameter{.link = link, .offset = slice.offset}}});
    place.value = step_.add_array(Kind::parameter, name, to, elements * sizeof(float));
    place.weights = place.value;
    insert_receive(name, link, place.value);
    const DType type = step_.compute_type(to);
    if (type == DType::float32) return place;
    place.weights = step_.add_array(Kind::parameter, name, to, elements * bytes_of(type));
    const Instruction& reader = program_.instructions[at_];
    insertions_.before(at_, {to, reader.phase, reader.node, name + " cast",
                             CastParameters{place.value, place.weights, slice.elements()}});
    return place;
  }

  void insert_sends() {
    const auto key = [](const Sending& sending) {
      return std::tuple(sending.defined, sending.rank, sending.value);
    };
    std::stable_sort(sendings_.begin(), sendings_.end(),
                     [&](const Sending& a, const Sending& b) { return key(a) < key(b); });
    for (Sending& sending : sendings_) insertions_.after(sending.defined, std::move(sending.instruction));
  }

  CompileState& step_;
  Program& program_;
  const IdVector<ValueId, int64_t> defined_;
  Insertions insertions_;
  OperandPlaces places_;
  size_t at_ = 0;  // position of the instruction whose operands are received
  std::map<std::pair<ValueId, int>, ValueId> received_;
  std::map<std::pair<const ParameterSlice*, int>, ParameterPlace> parameters_;
  std::vector<Sending> sendings_;
};

}  // namespace

void transfer_values(CompileState& step) {
  if (step.program.slots() > 1) Transfers(step).insert();
}

}  // namespace dtrain
