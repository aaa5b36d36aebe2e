// When, how and where this process was started: what run.jsonl says of it.
#pragma once

#include "base/json.h"

namespace dtrain {

/// What describe_invocation() tells; to be called by main().
void remember_command(int argc, char** argv);

/// The time of now, as "2026-11-21T22:39:54+0100".
std::string format_time_now();

/// Sets command, version, machine, working directory and process id.
Json& describe_invocation(Json& event);

}  // namespace dtrain
