// The subcommands. Each function adds one to the parser, which runs it once the whole command line is read.
#pragma once

#include <CLI/CLI.hpp>

namespace dtrain {

void add_fit(CLI::App& app);
void add_resume(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_predict(CLI::App& app);
void add_check(CLI::App& app);
void add_summary(CLI::App& app);
void add_inspect(CLI::App& app);
void add_gpus(CLI::App& app);
void add_schema(CLI::App& app);
void add_help(CLI::App& app);

}  // namespace dtrain
