// The subcommands. Each function adds one to the command line, which runs it after parsing.
#pragma once

#include "cli/command_line.h"

namespace dtrain {

/// Thrown by `diff` if the sides differ: the program ends with exit code 1 and no message.
struct Unequal {};

void add_new(CommandLine& line);
void add_fit(CommandLine& line);
void add_resume(CommandLine& line);
void add_evaluate(CommandLine& line);
void add_predict(CommandLine& line);
void add_export(CommandLine& line);
void add_check(CommandLine& line);
void add_summary(CommandLine& line);
void add_import(CommandLine& line);
void add_inspect(CommandLine& line);
void add_diff(CommandLine& line);
void add_sweep(CommandLine& line);
void add_report(CommandLine& line);
void add_runs(CommandLine& line);
void add_gpus(CommandLine& line);
void add_schema(CommandLine& line);
void add_completion(CommandLine& line);
void add_help(CommandLine& line);

}  // namespace dtrain
