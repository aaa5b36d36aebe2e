#include "program/plan.h"

#include <utility>

#include "program/passes/passes.h"

namespace dtrain {

namespace {

std::vector<DType> compute_types(std::span<Ops* const> ops) {
  std::vector<DType> types;
  for (const Ops* slot : ops) types.push_back(slot->compute_type());
  return types;
}

}  // namespace

Plan::Plan(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
           std::span<Ops* const> its_ops, std::span<const int> slots, const PlanKey& key,
           const PlanOptions& options)
    : ops_(its_ops.begin(), its_ops.end()) {
  CompileState step(graph, layout, heads, slots, compute_types(its_ops), key, options);
  layers_ = compile(step, its_ops);
  program_ = std::move(step.program);
  warnings_ = std::move(step.warnings);
  notes_ = std::move(step.notes);
  for (const ProgramReorder& made : program_.reorders)
    reorders_.add(ops(made.slot).reorder(made.shape, made.from, made.to));
  arena_bytes_ = program_.arenas;
  make_links(options.spin);
}

void Plan::make_links(bool spin) {
  for (const ProgramLink& made : program_.links) {
    auto link = std::make_unique<Link>(ops(made.from).context(), ops(made.to).context(), made.bytes,
                                       made.keeping, made.most, spin);
    const int keeper = link->copies_are_with_receiver() ? made.to : made.from;
    if (link->copies()) arena_bytes_[static_cast<size_t>(keeper)].links += made.bytes;
    links_.add(std::move(link));
  }
}

void Plan::join_collectives(int slot, Part part, Collective& replicas, StateShards* shards) const {
  for (const Instruction& instruction : program_.instructions) {
    if (!belongs(instruction, slot, part)) continue;
    if (const int64_t count = gathered_by(instruction); count > 0) all_gather_zeros(replicas, count);
    if (const auto* gather = std::get_if<GatherParameters>(&instruction.work))
      if (gather->range.size() > 0) shards->gather(gather->range, nullptr);
    if (const auto* reduce = std::get_if<ReduceBucket>(&instruction.work))
      if (reduce->range.size() > 0) shards->reduce(reduce->range, nullptr);
  }
}

void Plan::abort() const noexcept {
  for (const auto& link : links_) link->abort();
}

int64_t gathered_by(const Instruction& instruction) {
  if (const auto* forward = std::get_if<LayerForward>(&instruction.work)) return forward->gathered;
  if (const auto* backward = std::get_if<LayerBackward>(&instruction.work)) return backward->gathered;
  return 0;
}

}  // namespace dtrain
