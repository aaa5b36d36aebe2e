#include "program/plan.h"

#include <utility>

#include <fmt/format.h>

#include "collective/link.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

std::vector<DType> compute_types(std::span<Ops* const> ops) {
  std::vector<DType> types;
  for (const Ops* slot : ops) types.push_back(slot->compute_type());
  return types;
}

/// Returns the link over which an instruction sends. Returns LinkId::none if the instruction does not send.
LinkId sent_over(const Instruction& instruction) {
  if (const auto* value = std::get_if<SendValue>(&instruction.work)) return value->link;
  if (const auto* parameter = std::get_if<SendParameter>(&instruction.work)) return parameter->link;
  return LinkId::none;
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
  make_links(options);
}

void Plan::make_links(const PlanOptions& options) {
  IdVector<LinkId, Part> parts(program_.links.size(), Part::forward);
  for (const Instruction& instruction : program_.instructions)
    if (const LinkId link = sent_over(instruction); link != LinkId::none)
      parts[link] = instruction.phase == Phase::backward ? Part::backward : Part::forward;
  for (size_t i = 0; i < program_.links.size(); ++i)
    make_link(static_cast<LinkId>(i), parts[static_cast<LinkId>(i)], options);
}

void Plan::make_link(LinkId id, Part part, const PlanOptions& options) {
  const ProgramLink& made = program_.links[id];
  const auto keep_at = [&](int slot) { arena_bytes_[static_cast<size_t>(slot)].links += made.bytes; };
  const bool sends = !options.remote || options.remote->is_here(made.from);
  const bool receives = !options.remote || options.remote->is_here(made.to);
  if (sends && receives) {
    auto link = std::make_unique<Link>(ops(made.from).context(), ops(made.to).context(), made.bytes,
                                       made.keeping, made.most, options.spin);
    if (link->copies()) keep_at(link->copies_are_with_receiver() ? made.to : made.from);
    links_.add(std::move(link));
  } else if (sends || receives) {
    const int here = sends ? made.from : made.to;
    Context& mine = ops(here).context();
    links_.add(options.remote->make_channel(made.from, made.to, part == Part::backward, mine, made.bytes,
                                            made.keeping, made.most));
    if (options.remote->copies(made.from, mine, made.keeping))
      arena_bytes_[static_cast<size_t>(here)].transfers += made.bytes * static_cast<size_t>(made.most);
  } else {
    links_.add(nullptr);
  }
}

void Plan::expect(int slot) const {
  for (const Instruction& instruction : program_.instructions)
    if (const LinkId link = sent_over(instruction); link != LinkId::none && program_.links[link].to == slot)
      links_[link]->expect();
}

std::string Plan::transfers() const {
  std::string text;
  for (const Instruction& instruction : program_.instructions) {
    const LinkId link = sent_over(instruction);
    if (link == LinkId::none) continue;
    const auto* const value = std::get_if<SendValue>(&instruction.work);
    const Layout layout = value ? program_.values[value->value].layout : Layout::plain;
    text += fmt::format("{} {} {} {}\n", instruction.name, static_cast<int>(layout), program_.links[link].to,
                        program_.links[link].bytes);
  }
  return text;
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
  for (const auto& link : links_)
    if (link) link->abort();
}

int64_t gathered_by(const Instruction& instruction) {
  if (const auto* forward = std::get_if<LayerForward>(&instruction.work)) return forward->gathered;
  if (const auto* backward = std::get_if<LayerBackward>(&instruction.work)) return backward->gathered;
  return 0;
}

}  // namespace dtrain
