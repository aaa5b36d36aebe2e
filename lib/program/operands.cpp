#include "program/operands.h"

#include "program/parameter_update.h"

namespace dtrain {

namespace {

/// Lists the operands of each kind of work, as ids or as pointers to ids.
template <class Found>
class OperandFinder {
 public:
  OperandFinder(Program& program, Found& found) : program_(program), found_(found) {}

  void operator()(LayerForward& work) {
    LayerCall& call = program_.calls[work.call];
    read_all(call.inputs);
    read_all(call.masks);
    read(call.addend);
    read_parameters(call);
    write_all(call.outputs);
    write(call.saved);
    write(call.scratch);
  }
  void operator()(LayerBackward& work) {
    LayerCall& call = program_.calls[work.call];
    read_all(call.diff_outputs);
    read(call.saved);
    read_all(call.outputs);
    read_all(call.inputs);
    read_all(call.masks);
    read_parameters(call);
    write_all(call.diff_inputs);
    for (GradientPlace& place : call.gradients) write(place.value);
    write(call.scratch);
  }
  void operator()(PassOn& work) {
    read(work.from);
    write(work.to);
  }
  void operator()(ComputeLoss& work) {
    read(work.prediction);
    read(work.target);
    read(work.weights);
    write(work.diff_prediction);
  }
  void operator()(ComputeMetrics& work) {
    read(work.prediction);
    read(work.target);
    read(work.weights);
    read(work.unweighted);
  }
  void operator()(AddActivityPenalty& work) { read(work.value); }
  void operator()(ComputeActivityGradient& work) {
    read(work.value);
    write(work.to);
  }
  void operator()(MaskWeights& work) {
    read(work.weights);
    read(work.mask);
    write(work.to);
  }
  void operator()(SumWeights& work) { read(work.weights); }
  void operator()(ReorderValue& work) {
    read(work.from);
    write(work.to);
  }
  void operator()(CastParameters& work) {
    read(work.from);
    write(work.to);
  }
  void operator()(SendValue& work) { read(work.value); }
  void operator()(SendParameter&) {}
  void operator()(ReceiveValue& work) { write(work.value); }
  void operator()(GatherParameters& work) { write(work.to); }
  void operator()(JoinGathered& work) { write_all(work.gathered); }
  void operator()(SumGradients& work) {
    read_all(work.sources);
    read(work.activated);
    write(work.sum);
    write(work.bias.value);
  }
  void operator()(SumBiasGradient& work) {
    read(work.gradient);
    write(work.bias.value);
  }
  void operator()(AccumulateGradient& work) { read(work.from); }
  void operator()(AddSharedGradient& work) {
    read(work.from);
    write(work.to.value);
  }
  void operator()(ZeroGradient& work) {
    read(work.statistic.value);
    write(work.to.value);
  }
  void operator()(ZeroBucket& work) { write(work.bucket); }
  void operator()(ReduceBucket& work) { read(work.bucket); }
  void operator()(GradientsReady&) {}
  /// Finds nothing, because the instructions of an update work on ranges of the slot's parameters and
  /// gradients. These ranges are not values of the program.
  void operator()(UpdateWork auto&) {}

 private:
  static void add(std::vector<ValueId>& list, const ValueId& id) { list.push_back(id); }
  static void add(std::vector<ValueId*>& list, ValueId& id) { list.push_back(&id); }
  void read(ValueId& id) {
    if (id != ValueId::none) add(found_.reads, id);
  }
  void write(ValueId& id) {
    if (id != ValueId::none) add(found_.writes, id);
  }
  void read_all(std::vector<ValueId>& ids) {
    for (ValueId& id : ids) read(id);
  }
  void write_all(std::vector<ValueId>& ids) {
    for (ValueId& id : ids) write(id);
  }
  void read_parameters(LayerCall& call) {
    for (ParameterPlace& place : call.parameters) {
      read(place.value);
      if (place.weights != place.value) read(place.weights);
    }
  }

  Program& program_;
  Found& found_;
};

}  // namespace

void find_operands(Program& program, Instruction& instruction, OperandPlaces& found) {
  found.reads.clear();
  found.writes.clear();
  std::visit(OperandFinder(program, found), instruction.work);
}

void find_operands(const Program& program, const Instruction& instruction, Operands& found) {
  found.reads.clear();
  found.writes.clear();
  // The finder does not modify the instruction; it only copies ids.
  std::visit(OperandFinder(const_cast<Program&>(program), found), const_cast<Work&>(instruction.work));
}

Operands operands_of(const Program& program, const Instruction& instruction) {
  Operands found;
  find_operands(program, instruction, found);
  return found;
}

}  // namespace dtrain
