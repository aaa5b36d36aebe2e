// Runs a plan for a frame.
#pragma once

#include <cstdint>
#include <functional>

#include "program/frame.h"
#include "program/plan.h"

namespace dtrain {

/// Runs one instruction of the frame's plan.
void execute(const Instruction& instruction, Frame& frame);
/// Runs every instruction for a frame that is bound to all slots. In training with a single slot, calls
/// on_ready(end) as gradients become ready: the gradients in [0, end) of the layout's trained
/// parameters have been enqueued. The last `end` is the end of the last parameter, without the alignment
/// padding after it.
void run_all(Frame& frame, const StepInfo& info, const std::function<void(int64_t)>& on_ready = nullptr);
/// Runs the instructions of one slot and part for a frame of this slot. Must be called on the slot's thread,
/// while the threads of the other slots run theirs for the same microbatches, in an order in which every
/// transfer can be matched.
void run_part(Frame& frame, int slot, Plan::Part part);
/// Waits until the other slots have received everything that the frame sent, so that its memory may be
/// reused.
void wait_received(const Frame& frame, int slot);

}  // namespace dtrain
