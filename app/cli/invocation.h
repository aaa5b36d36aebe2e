// Describes for run.jsonl when, how and where this process was started.
#pragma once

#include "base/json.h"

namespace dtrain {

/// Keeps the command line for describe_invocation(). main() calls this first.
void remember_command(int argc, char** argv);

/// Returns the current time, as "2026-11-21T22:39:54+0100".
std::string format_time_now();

/// Sets an event's keys that describe this process: command, version, machine, working directory and process
/// id. Returns the event.
Json& describe_invocation(Json& event);

}  // namespace dtrain
