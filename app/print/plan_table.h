// A plan as people, and programs, read it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "device/device.h"
#include "program/plan.h"

namespace dtrain {

/// The slots, the instructions in order, and the buffers. `devices` are those of the slots.
std::string plan_text(const Plan& plan, const std::vector<DeviceId>& devices);
/// {batch, slots: [{device, arena_bytes}], instructions: [{slot, phase, name, reads, writes}], buffers:
/// [{name, slot, offset, bytes, first, last}]}; reads and writes are numbers of buffers; a buffer is kept
/// from its first instruction to its last, or (null) to the plan's end.
Json plan_json(const Plan& plan, const std::vector<DeviceId>& devices);

}  // namespace dtrain
