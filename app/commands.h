// The subcommands. Each function adds one subcommand to the command line. The command line runs the chosen
// subcommand after parsing. `world`: the processes that run the subcommand together. It must outlive the
// command line.
#pragma once

#include "cli/command_line.h"
#include "collective/world.h"

namespace dtrain {

/// Thrown by `diff` if the sides differ: the program ends with exit code 1 and no message.
struct Unequal {};

void add_new(CommandLine& line);
void add_fit(CommandLine& line, World& world);
void add_resume(CommandLine& line, World& world);
void add_stop(CommandLine& line);
void add_evaluate(CommandLine& line, World& world);
void add_predict(CommandLine& line, World& world);
void add_generate(CommandLine& line, World& world);
void add_export(CommandLine& line);
void add_check(CommandLine& line, World& world);
void add_summary(CommandLine& line);
void add_import(CommandLine& line);
void add_inspect(CommandLine& line);
void add_diff(CommandLine& line);
void add_sweep(CommandLine& line);
void add_report(CommandLine& line);
void add_runs(CommandLine& line);
void add_gpus(CommandLine& line, World& world);
void add_schema(CommandLine& line);
void add_completion(CommandLine& line);
void add_help(CommandLine& line);

}  // namespace dtrain
