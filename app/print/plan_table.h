// Formats a plan as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "device/device.h"
#include "program/plan.h"
#include "program/update_program.h"

namespace dtrain {

/// Returns the slots, the instructions in order, the buffers, and the update at the end of a step. `devices`
/// has the device of each slot.
std::string plan_text(const Plan& plan, const UpdateProgram& update, const std::vector<DeviceId>& devices);
/// Returns {batch, slots: [{device, arena_bytes}], instructions: [{slot, phase, name, reads, writes}],
/// buffers: [{name, slot, offset, bytes, first, last}], update: [{slot, phase, name, floats, runs}]}. `reads`
/// and `writes` are buffer indices. A buffer lives from instruction `first` to `last`, or to the end of the
/// plan if `last` is null. `floats` is a range of the slot's parameters; `runs` is "reduction", "device" or
/// "host" (the parts of UpdateProgram).
Json plan_json(const Plan& plan, const UpdateProgram& update, const std::vector<DeviceId>& devices);

}  // namespace dtrain
