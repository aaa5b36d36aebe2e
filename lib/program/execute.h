// Runs a plan for a frame.
#pragma once

#include <cstdint>
#include <functional>

#include "program/frame.h"
#include "program/plan.h"

namespace dtrain {

/// Runs one instruction of the frame's plan.
void execute(const Instruction& instruction, Frame& frame);
/// Runs every instruction for a frame that is bound to all slots. `on_ready(end)` during a training run, of a
/// plan over one slot: the gradients in [0, end) of the layout's trained ones have all been enqueued. The
/// last `end` is that of the last parameter, before what aligns it.
void run_all(Frame& frame, const StepInfo& info, const std::function<void(int64_t)>& on_ready = nullptr);
/// Runs a slot's instructions of one part for a frame of this slot's; on the slot's thread, while those of
/// the other slots run theirs for the same microbatches in an order that can meet.
void run_part(Frame& frame, int slot, Plan::Part part);
/// Waits until the other slots have received everything that the frame sent, so that its memory may be
/// reused.
void wait_received(const Frame& frame, int slot);

}  // namespace dtrain
