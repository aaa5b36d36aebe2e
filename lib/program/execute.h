// Runs a plan for a frame.
#pragma once

#include "program/frame.h"
#include "program/parameter_update.h"
#include "program/plan.h"

namespace dtrain {

/// Runs one instruction of the frame's plan.
void execute(const Instruction& instruction, Frame& frame);
/// Runs one instruction of an UpdateProgram. Throws std::logic_error for instructions that need a frame.
void execute(const Instruction& instruction, ParameterUpdate& update);
/// Runs every instruction for a frame that is bound to all slots. Throws ProcessFailed between two
/// instructions if another process has failed (SlotArrays::world).
void run_all(Frame& frame, const StepInfo& info);
/// Runs the instructions of one slot and part for a frame of this slot. Must be called on the slot's thread.
/// At the same time, the threads of the other slots must run their instructions for the same microbatches, in
/// an order in which every receive has a matching send. Throws ProcessFailed in the same cases as run_all().
void run_part(Frame& frame, int slot, Plan::Part part);
/// Waits until the other slots have received everything that the frame has sent, so that the frame's memory
/// may be reused.
void wait_received(const Frame& frame, int slot);

}  // namespace dtrain
