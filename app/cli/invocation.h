// When, how and where this process was started: what run.jsonl says of it.
#pragma once

#include "base/json.h"

namespace dtrain {

/// Keeps the command line for describe_invocation(). main() calls this first.
void remember_command(int argc, char** argv);

/// The time at present, as "2026-11-21T22:39:54+0100".
std::string format_time_now();

/// Sets the keys of an event that tell of this process: command, version, machine, working directory and
/// process id. Returns the event.
Json& describe_invocation(Json& event);

}  // namespace dtrain
